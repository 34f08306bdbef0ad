from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.vocabulary.report import VERDICT_WORDS, VERDICTS
from autograder.vocabulary.text import INVISIBLE, number, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ada", "ada"),
        ("Nguyễn Văn An", "Nguyễn Văn An"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\0", "nul\\x00"),
        ("\x9b1m", "\\x9b1m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028paragraph\u2029", "line\\u2028paragraph\\u2029"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("a\tb\r\nc", "a\\tb\\r\\nc"),
    ],
)
def test_a_character_that_acts_unseen_is_written_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_breaks_stay_where_they_are_asked_for() -> None:
    assert visible("a\nb\r\nc\rd\te", newlines=True) == "a\nb\nc\\rd\\te"


@given(ANY_TEXT, st.booleans(), st.none() | st.integers(0, 30))
def test_nothing_invisible_survives(text: str, newlines: bool, limit: int | None) -> None:
    shown = visible(text, limit, newlines=newlines)
    left = {character for character in shown if unicodedata.category(character) in INVISIBLE}
    assert left <= ({"\n"} if newlines else set())
    shown.encode()


@given(ANY_TEXT, st.booleans())
def test_what_is_visible_stays_as_it_is(text: str, newlines: bool) -> None:
    shown = visible(text, newlines=newlines)
    assert visible(shown, newlines=newlines) == shown


@given(ANY_TEXT, st.integers(1, 30))
def test_a_capped_text_is_a_beginning_and_an_ellipsis(text: str, limit: int) -> None:
    whole, shown = visible(text), visible(text, limit)
    assert len(shown) <= limit
    assert shown == whole if len(whole) <= limit else shown.endswith("…") and whole.startswith(shown[:-1])


def test_no_escape_is_cut_in_two() -> None:
    assert [visible("ab\x1bcd", limit) for limit in (2, 3, 6, 7, 8)] == [
        "a…",
        "ab…",
        "ab…",
        "ab\\x1b…",
        "ab\\x1bcd",
    ]


def test_a_megabyte_is_capped_without_being_walked() -> None:
    assert visible("\x1b" * 10**6, 10) == "\\x1b\\x1b…"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (83.5, "83.5"),
        (100.0, "100"),
        (4, "4"),
        (0.0, "0"),
        (-0.0, "0"),
        (1 / 3, "0.33"),
        (66.10, "66.1"),
        (1e6, "1000000"),
    ],
)
def test_a_number_has_no_needless_zeros(value: float, shown: str) -> None:
    assert number(value) == shown


def test_every_verdict_has_its_own_words() -> None:
    assert set(VERDICT_WORDS) == set(VERDICTS)
    assert len(set(VERDICT_WORDS.values())) == len(VERDICTS)

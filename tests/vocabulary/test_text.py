"""Text that is safe to show: what acts without being seen is an escape, and a cap cuts no escape in two."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.vocabulary.text import INVISIBLE, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()))


SHOWN = {
    "Nguyễn Văn An": "Nguyễn Văn An",
    **{text: text.encode("unicode_escape").decode() for text in (
        "\x1b[31mred", "nul\0", "\x9b1m", "\u202egnp.exe", "a\u2066b\u2069", "zero\u200bwidth\ufeff",
        "line\u2028paragraph\u2029", "tag\U000e0041", "lone\ud800", "a\tb\r\nc",
    )},
}  # fmt: skip


@pytest.mark.parametrize("text", SHOWN)
def test_invisible_character_is_its_escape(text: str) -> None:
    assert visible(text) == SHOWN[text]


@given(ANY_TEXT, st.booleans(), st.none() | st.integers(1, 30))
def test_visible_text_hides_nothing_and_is_a_beginning(text: str, newlines: bool, limit: int | None) -> None:
    whole, shown = visible(text, newlines=newlines), visible(text, limit, newlines=newlines)
    left = {character for character in shown if unicodedata.category(character) in INVISIBLE}
    assert left <= ({"\n"} if newlines else set())
    shown.encode()
    assert visible(whole, newlines=newlines) == whole
    if limit is not None:
        assert len(shown) <= limit
        assert shown == whole if len(whole) <= limit else shown.endswith("…") and whole.startswith(shown[:-1])


def test_line_breaks_stay_and_caps_hold() -> None:
    assert visible("a\nb\r\nc\rd\te", newlines=True) == "a\nb\nc\\rd\\te"
    capped = [visible("ab\x1bcd", limit) for limit in (0, 2, 3, 6, 7, 8)]
    assert capped == ["", "a…", "ab…", "ab…", "ab\\x1b…", "ab\\x1bcd"]
    assert visible("\x1b" * 10**6, 10) == "\\x1b\\x1b…"  # without walking over all of it

"""A report as text: what a student reads in a terminal and in Markdown, and what no text in it can do there."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.vocabulary.report import NOT_REACHED, VERDICTS, ItemResult, Report, SubmissionInfo, Verdict
from autograder.vocabulary.report_text import WIDTH, item_lines, item_markdown, report_text, totals
from autograder.vocabulary.text import INVISIBLE, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()))
MESSAGE = """\
deltas   float32[batch=3 trial=5]
5 of 15 values differ, all at batch 1 (allowed: 1e-05 relative)
  [batch trial]  yours  expected
  [1 0]            nan         0
  … 4 more"""

HINT = "Every response to that prompt earned the same reward. What is its standard deviation?"


def item(points: float | None = 0.0, verdict: Verdict = "failed", **more: Any) -> ItemResult:
    fields: dict[str, Any] = {
        "item": "deltas-normalized",
        "function": "compute_deltas",
        "title": "a prompt whose responses all earn the same reward",
        "max_points": 6.0,
        "mistakes": (),
        "message": MESSAGE,
        "hint": HINT,
        "seconds": 0.004,
        "cases": (),
        **more,
    }
    return ItemResult(points=points, verdict=verdict, **fields)


def passed(points: float = 4.0, **more: Any) -> ItemResult:
    return item(points, "passed", **{"item": "deltas-max", "max_points": points, "message": "", "hint": "", **more})


def not_graded(**more: Any) -> ItemResult:
    return item(None, "not_graded", **{"item": "seed", "message": "No worker could be started.", "hint": "", **more})


def report(*items: ItemResult) -> Report:
    return Report("ada", "policy_gradient", SubmissionInfo("ada/policy_gradient.py", "00"), "ff", (), items)


# One item


def test_failure_is_headline_message_hint_and_command() -> None:
    head, *rest, again = item_lines(item())
    start = "FAIL  deltas-normalized  a prompt whose responses all earn the same reward"
    assert head == start.ljust(WIDTH - 5) + "0 / 6"
    assert rest == [f"  {line}" for line in (*MESSAGE.splitlines(), HINT)]
    assert re.fullmatch(r"  Again: .*autograder check --item deltas-normalized", again)
    assert len(item_lines(item(message="one line", hint=""))) == 3


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_has_its_word_and_is_rerun_if_useful(verdict: Verdict) -> None:
    head, *rest = item_lines(item(None if verdict == "not_graded" else 0.0, verdict, message="m", hint=""))
    word = {"passed": "PASS  ", "missing": "TODO  ", "not_graded": "ERR   "}.get(verdict, "FAIL  ")
    assert head.startswith(f"{word}deltas-normalized  a prompt")
    assert head.endswith(" ? / 6" if verdict == "not_graded" else " 0 / 6")
    assert rest[:1] == ([] if verdict == "passed" else ["  m"])
    assert ("check --item" in "".join(rest)) == (verdict not in ("passed", "missing", "not_graded"))


@pytest.mark.parametrize("width", [60, WIDTH])
@pytest.mark.parametrize("make", [item, passed])
def test_title_is_whole_in_any_terminal(make: Callable[..., ItemResult], width: int) -> None:
    title = "sample once per epoch, inner steps on the same responses, every setting passed on to what is called"
    first, second, *_ = item_lines(make(33.33, title=title, max_points=100.0), width=width)
    assert first.endswith(" 33.33 / 100")
    assert len(first) == width
    assert second.startswith("      ")
    assert title in " ".join(f"{first[:-12]} {second} {' '.join(_)}".split())


@given(ANY_TEXT, ANY_TEXT)
def test_no_message_or_hint_moves_the_cursor_or_begins_a_line(message: str, hint: str) -> None:
    head, *rest = item_lines(item(message=message, hint=hint))
    assert all(line.startswith("  ") for line in rest)
    text = "\n".join([head, *rest])
    assert {character for character in text if unicodedata.category(character) in INVISIBLE} <= {"\n"}
    filled = len(visible(message)) // (WIDTH // 2 - 1) + len(textwrap.wrap(visible(hint), WIDTH - 2))
    assert text.count("\n") <= message.count("\n") + 2 + filled  # both fill lines, and a hint begins none of its own
    text.encode()


# A whole report


def test_report_is_notes_what_is_wrong_and_sums() -> None:
    text = report_text(report(passed(), item(message="wrong", hint="")), ["the notebook\x1b[2J counts"])
    note, head, message, again, *rest = text.splitlines()
    assert note == "Note: the notebook\\x1b[2J counts"
    assert head.startswith("FAIL  deltas-normalized")
    assert (message, again[:9]) == ("  wrong", "  Again: ")
    assert rest == ["", "FAIL  compute_deltas      4 / 10  deltas-normalized", "      total               4 / 10"]
    assert report_text(report()).strip() == "total       0 / 0"
    each = report_text(report(passed()), each=True)
    assert [line.split()[0] for line in each.splitlines() if line] == ["PASS", "total"]


def test_one_cause_is_told_once() -> None:
    place = ["Line 2 of your file:", ">    2   x = 1"]
    message = "f raised E.\nLine 2 of your file:\n  x = 1"
    items = item(message=message), item(item="b"), item(item="c", hint="Another?"), item(item="d", function="g")
    places = {each.item: place for each in items}
    text = report_text(report(*items), places=places)
    assert text.startswith(
        f"{item_lines(items[0])[0]}\n  f raised E.\n  Line 2 of your file:\n  >    2   x = 1\n  Every"
    )
    assert text.count("  Line 2 of your file:") == 3
    called = report_text(report(item(message=f"{message}\nWhat this calls:\n  f()")), places=places)
    assert "  f raised E.\n  What this calls:\n    f()\n  Line 2 of your file:" in called
    assert "  Hint and line: as for deltas-normalized.\n  Again: python -m autograder check --item b\n" in text
    same = report_text(report(*(item(item=name, message=message) for name in "ab")), places=dict.fromkeys("ab", place))
    assert same.count("f raised E.") == 1
    assert "\n  As for a.\n\n" in same
    right = passed(item="e", function="h"), passed(item="f", function="i")  # of which one is right only now
    seen = ["deltas-normalized", "b", "c", "d", "e"]
    brief = report_text(report(*items, *right), places=places, brief=seen).splitlines()
    assert [line[:4] for line in brief] == ["FAIL"] * 4 + ["", "PASS"] + ["FAIL"] * 2 + ["    "]
    assert brief[5].split()[1] == "i"


@pytest.mark.parametrize("width", [60, 80])
def test_every_line_but_tables_fits_the_terminal(width: int) -> None:
    many = [item(item=f"one-of-many-{n}", message="a sentence that goes on " * 9) for n in range(9)]
    lines = report_text(report(*many), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_items_that_one_cause_lost_share_a_line() -> None:
    lost = [
        item(0.0, "raised", item=f"loop-{number}", message=f"{NOT_REACHED}: m.py could not be imported.", hint="")
        for number in range(30)
    ]
    cause = "m.py could not be imported.\nLine 3 of your file:\n  def f("
    whole = replace(report(*lost), cause=cause)
    assert report_text(whole).splitlines() == [
        *cause.splitlines(), "", "No item was reached.", "",
        "FAIL  compute_deltas     0 / 180", "      total              0 / 180",
    ]  # fmt: skip
    part = report_text(replace(report(item(), *lost[:2]), cause=cause))
    assert "FAIL  deltas-normalized" in part
    assert "\nNot reached: loop-0, loop-1.\n" in part
    assert part.count("Again: ") == 1


def test_functions_to_mend_stand_last_above_the_total() -> None:
    stub = item(0.0, "missing", function="run", message="run is not implemented yet.")
    renamed = item(0.0, "missing", function="save", message="save is not defined. Did you mean sav?", max_points=1.0)
    items = item(2.5), passed(3.0, function="compute_kl_penalty"), passed(1.25), stub, renamed
    assert totals(report(*items)) == [
        "PASS  compute_kl_penalty       3 / 3",
        "TODO  run                      0 / 6",
        "TODO  save                     0 / 1  save is not defined. Did you mean sav?",
        "FAIL  compute_deltas     3.75 / 7.25  deltas-normalized",
        "      total              6.75 / 17.25",
    ]
    with_hole = totals(report(passed(), not_graded(function="run_policy_gradient")))
    assert [line.split(maxsplit=2)[-1] for line in with_hole] == ["4 / 4", "? / 6  seed", "/ 10"]


# Markdown


def fenced(markdown: str) -> list[str]:
    """The lines inside the fence, by CommonMark's rule for where it ends."""
    lines = markdown.split("\n")
    start = lines.index("```text") + 1
    end = next(n for n, line in enumerate(lines[start:], start) if re.fullmatch(r" {0,3}`{3,}[ \t]*", line))
    return lines[start:end]


@given(st.text(st.sampled_from("`~ \n#a\t\r")))
def test_no_arrangement_of_backticks_ends_the_fence(message: str) -> None:
    assert len(fenced(item_markdown(item(message=message, hint="")))) == message.replace("\r\n", "\n").count("\n") + 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `code` span", r"a \`code\` span"),
        ("a|b ~c~", r"a\|b \~c\~"),
        ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert\(1\)\>"),
        ("[x](javascript:y)", r"\[x\]\(javascript:y\)"),
        ("*bold* _italic_ # head", r"\*bold\* \_italic\_ \# head"),
        (r"back\slash", r"back\\slash"),
        ("two\nlines", r"two\\nlines"),
    ],
)
def test_hint_means_in_markdown_what_it_says(text: str, shown: str) -> None:
    lines = item_markdown(item(hint=text)).splitlines()
    assert lines == ["```text", *MESSAGE.splitlines(), "```", "", shown]
    assert item_markdown(passed()) == ""


@given(ANY_TEXT, ANY_TEXT)
def test_markdown_of_any_text_hides_nothing(message: str, hint: str) -> None:
    markdown = item_markdown(item(message=message, hint=hint))
    assert {character for character in markdown if unicodedata.category(character) in INVISIBLE} <= {"\n"}
    assert not re.search(r"(?<!\\)[<>|]", markdown.split("\n")[-2])
    markdown.encode()

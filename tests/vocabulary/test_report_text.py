from __future__ import annotations

import re
import textwrap
import unicodedata
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


def item(
    name: str = "deltas-normalized", points: float | None = 0.0, verdict: Verdict = "failed", **more: Any
) -> ItemResult:
    settings: dict[str, Any] = {
        "function": "compute_deltas",
        "title": "a prompt whose responses all earn the same reward",
        "max_points": 6.0,
        "mistakes": (),
        "message": MESSAGE,
        "hint": "Every response to that prompt earned the same reward. What is its standard deviation?",
        "seconds": 0.004,
        "cases": (),
        **more,
    }
    return ItemResult(item=name, points=points, verdict=verdict, **settings)


def passed(name: str = "deltas-max", points: float = 4.0, **more: Any) -> ItemResult:
    return item(name, points, "passed", **{"max_points": points, "message": "", "hint": "", **more})


def not_graded(name: str = "loop-seed", **more: Any) -> ItemResult:
    return item(name, None, "not_graded", **{"message": "A worker could not be started.", "hint": "", **more})


def report(*items: ItemResult) -> Report:
    return Report("ada", "policy_gradient", SubmissionInfo("ada/policy_gradient.py", "00"), "ff", (), items)


def not_reached(name: str) -> ItemResult:
    return item(name, verdict="raised", message=f"{NOT_REACHED}: m.py could not be imported.", hint="")


# One item


def test_a_failure_is_headline_message_hint_and_the_command_that_runs_it_again() -> None:
    head, *rest, again = item_lines(item())
    start = "FAIL  deltas-normalized  a prompt whose responses all earn the same reward"
    assert head == start.ljust(WIDTH - 5) + "0 / 6"
    assert (
        "\n".join(rest)
        == """\
  deltas   float32[batch=3 trial=5]
  5 of 15 values differ, all at batch 1 (allowed: 1e-05 relative)
    [batch trial]  yours  expected
    [1 0]            nan         0
    … 4 more
  Every response to that prompt earned the same reward. What is its standard deviation?"""
    )
    assert re.fullmatch(r"  Again: .*autograder check --item deltas-normalized", again)


def test_a_pass_is_one_line() -> None:
    (line,) = item_lines(passed())
    assert line.startswith("PASS  deltas-max  a prompt")
    assert line.endswith(" 4 / 4")


def test_what_was_not_graded_costs_nothing_and_is_not_worth_running_again() -> None:
    head, message = item_lines(not_graded())
    assert head.startswith("ERR   loop-seed  a prompt")
    assert head.endswith(" ? / 6")
    assert message == "  A worker could not be started."


UNFAILED = ("passed", "missing", "not_graded")


@pytest.mark.parametrize("verdict", [verdict for verdict in VERDICTS if verdict not in UNFAILED])
def test_every_other_verdict_is_a_failure_that_can_be_run_again(verdict: Verdict) -> None:
    lines = item_lines(item(verdict=verdict))
    assert lines[0].startswith("FAIL  ")
    assert "check --item deltas-normalized" in lines[-1]


def test_what_is_not_implemented_yet_is_still_to_do_and_takes_two_lines() -> None:
    lines = item_lines(item(verdict="missing", message="compute_deltas is not implemented yet.", hint=""))
    assert lines[0].startswith("TODO  deltas-normalized")
    assert lines[1:] == ["  compute_deltas is not implemented yet."]


def test_a_long_hint_is_wrapped_at_the_width_of_a_page() -> None:
    lines = item_lines(item(message="wrong", hint="a hint that goes on " * 20))
    assert len(lines) > 5
    assert max(len(line) for line in lines) <= WIDTH


def test_without_a_hint_no_line_stands_for_it() -> None:
    assert len(item_lines(item(message="one line", hint=""))) == 3


@pytest.mark.parametrize("points", [0.0, 2.5, 100.0, 33.33])
def test_points_end_where_the_line_ends_whatever_their_width(points: float) -> None:
    lines = {len(item_lines(given)[0]) for given in (item(points=points), passed(points=points), not_graded())}
    assert lines == {WIDTH}


def test_what_one_cause_kept_from_being_reached_does_not_push_the_cause_out_of_sight() -> None:
    names = [f"loop-{place}" for place in range(30)]
    cause = "m.py could not be imported.\nLine 3 of your file:\n  def f("
    whole = replace(report(*map(not_reached, names)), cause=cause)
    assert report_text(whole).splitlines() == [
        *cause.splitlines(), "", "No item was reached.", "",
        "  compute_deltas             0 / 180", "  total                      0 / 180",
    ]  # fmt: skip
    part = report_text(replace(report(item(), *map(not_reached, names[:2])), cause=cause))
    assert "FAIL  deltas-normalized" in part
    assert "\nNot reached: loop-0, loop-1.\n" in part
    assert part.count("Again: ") == 1


@pytest.mark.parametrize("width", [60, WIDTH])
def test_of_what_is_wrong_a_student_reads_the_whole_title_however_narrow_the_terminal(width: int) -> None:
    title = "sample once per epoch, inner steps on the same responses, every setting passed on to what is called"
    wrong, right = item(title=title), passed(title=title)
    first, second, *_ = report_text(report(wrong, right), width=width).splitlines()
    assert first.endswith(" 0 / 6")
    assert len(first) == width
    assert second.startswith("      ")
    found = " ".join(report_text(report(wrong), width=width).replace(" 0 / 6", "").split())
    assert title in found
    assert "…" in item_lines(right, width=width)[0]


def test_a_long_title_leaves_a_gap_before_the_points() -> None:
    head = item_lines(item(title="x" * WIDTH, points=33.33, max_points=100.0))[0]
    assert re.search(r"x… 33\.33 / 100$", head)
    assert len(head) == WIDTH


@pytest.mark.parametrize("break_", ["\n", "\r\n"])
def test_every_line_of_a_message_is_indented(break_: str) -> None:
    assert item_lines(item(message=f"one{break_}  two", hint=""))[1:3] == ["  one", "    two"]


@given(ANY_TEXT, ANY_TEXT)
def test_no_message_or_hint_can_move_the_cursor_or_begin_a_line(message: str, hint: str) -> None:
    head, *rest = item_lines(item(message=message, hint=hint))
    assert all(line.startswith("  ") for line in rest)
    text = "\n".join([head, *rest])
    assert {character for character in text if unicodedata.category(character) in INVISIBLE} <= {"\n"}
    hinted = len(textwrap.wrap(visible(hint), WIDTH - 2))  # a hint fills its lines, and begins none of its own
    assert text.count("\n") <= message.count("\n") + 2 + hinted
    text.encode()


# A whole report


def test_points_are_summed_by_function_in_the_order_of_the_items_and_in_total() -> None:
    items = (item(points=2.5), passed("kl-values", 3.0, function="compute_kl_penalty"), passed(points=1.25))
    assert totals(report(*items)) == [
        "  compute_deltas          3.75 / 7.25",
        "  compute_kl_penalty           3 / 3",
        "  total                   6.75 / 10.25",
    ]


def test_a_sum_with_a_hole_in_it_is_no_sum() -> None:
    lines = totals(report(passed(), not_graded(function="run_policy_gradient")))
    assert [line.split(maxsplit=1) for line in lines] == [
        ["compute_deltas", "4 / 4"],
        ["run_policy_gradient", "not graded / 6"],
        ["total", "not graded / 10"],
    ]


def test_a_report_is_notes_items_and_sums() -> None:
    text = report_text(report(passed(), item(message="wrong", hint="")), ["the notebook\x1b[2J counts"])
    lines = text.splitlines()
    assert lines[0] == "Note: the notebook\\x1b[2J counts"
    assert [line.split("  ")[0] for line in lines[1:4]] == ["PASS", "FAIL", ""]
    assert lines[3] == "  wrong"
    assert lines[5] == ""
    assert lines[6:] == totals(report(passed(), item()))


def test_a_report_without_items_has_a_sum_of_0() -> None:
    assert report_text(report()).strip() == "total                        0 / 0"


# Markdown


def test_markdown_of_an_item_is_its_message_as_it_stands_and_the_hint() -> None:
    lines = item_markdown(item(points=2.5, hint="Why?")).splitlines()
    assert lines == ["```text", *MESSAGE.splitlines(), "```", "", "Why?"]
    assert item_markdown(passed()) == ""


def fenced(markdown: str) -> list[str]:
    """The lines inside the fence, by CommonMark's rule for where it ends."""
    lines = markdown.split("\n")
    start = lines.index("```text") + 1
    end = next(n for n, line in enumerate(lines[start:], start) if re.fullmatch(r" {0,3}`{3,}[ \t]*", line))
    return lines[start:end]


@pytest.mark.parametrize(
    "message",
    [
        "```\n# out of the fence",
        "````\n<script>",
        "`````\n# out",
        "   ```   \n| a | b |",
        "a\n``````\n```\nb",
        "~~~\n# not a fence here",
        "\r\n```\r\nout",
    ],
)
def test_no_message_ends_its_fence(message: str) -> None:
    markdown = item_markdown(item(message=message, hint=""))
    assert len(fenced(markdown)) == len(message.splitlines())
    assert markdown.split("\n").count("```") == 1


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
def test_a_hint_means_in_markdown_what_it_says(text: str, shown: str) -> None:
    assert item_markdown(item(message="m", hint=text)).splitlines() == ["```text", "m", "```", "", shown]


@given(ANY_TEXT, ANY_TEXT)
def test_markdown_of_any_text_can_be_written_and_hides_nothing(message: str, hint: str) -> None:
    markdown = item_markdown(item(message=message, hint=hint))
    assert {character for character in markdown if unicodedata.category(character) in INVISIBLE} <= {"\n"}
    assert not re.search(r"(?<!\\)[<>|]", markdown.split("\n")[-2])
    markdown.encode()

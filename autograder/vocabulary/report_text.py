"""Report → text: the same words for the terminal, Markdown and JSON. Pure; whatever comes from students is escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from autograder.vocabulary.report import ItemResult, Report, Verdict
from autograder.vocabulary.text import number, visible

WIDTH = 100
AGAIN = "python -m autograder check --item {item}"
WORDS: Mapping[Verdict, str] = {"passed": "PASS", "missing": "TODO", "not_graded": "ERR "}


def item_lines(item: ItemResult, *, again: str = AGAIN, width: int = WIDTH) -> list[str]:
    """One item as a student sees it: headline; for a failure message, hint and what reruns it, if anything does."""
    points = f"{number(item.points) if item.points is not None else '?'} / {number(item.max_points)}"
    head, room = f"{WORDS.get(item.verdict, 'FAIL')}  {item.item}  {item.title}", width - len(points) - 1
    head = head if len(head) <= room else f"{head[: room - 1]}…"
    lines = [f"{head:<{room}} {points}"]
    if item.verdict == "passed":
        return lines
    lines += [f"  {line}" for line in visible(item.message, newlines=True).splitlines()]
    lines += textwrap.wrap(visible(item.hint), width, initial_indent="  ", subsequent_indent="  ")
    if again and item.verdict not in ("missing", "not_graded"):
        lines.append(f"  Again: {again.format(item=item.item)}")
    return lines


def report_text(report: Report, notes: Sequence[str] = ()) -> str:
    """The whole report for a terminal: items, then points by function, then the sum."""
    lines = [f"Note: {visible(note)}" for note in notes]
    for item in report.items:
        lines += [*item_lines(item), *([] if item.verdict in ("passed", "missing") else [""])]
    apart = [] if lines[-1:] == [""] else [""]
    return "\n".join([*lines, *apart, *totals(report)])


def totals(report: Report) -> list[str]:
    """Points by function, then the sum."""
    functions = dict.fromkeys(item.function for item in report.items)
    rows = [(function, [item for item in report.items if item.function == function]) for function in functions]
    lines = [f"  {function:<24}{_sum(items):>10}" for function, items in rows]
    return [*lines, f"  {'total':<24}{_sum(report.items):>10}"]


def _sum(items: Iterable[ItemResult]) -> str:
    items = list(items)
    most = number(sum(item.max_points for item in items))
    if any(item.points is None for item in items):
        return f"not graded / {most}"
    return f"{number(sum(item.points or 0.0 for item in items))} / {most}"


def item_markdown(item: ItemResult) -> str:
    """What was wrong with one item, as Markdown: the message as it stands, then the hint; "" where it passed."""
    if item.verdict == "passed":
        return ""
    return fenced(item.message) + f"\n{_quoted(item.hint)}\n"


def fenced(text: str) -> str:
    """`text` as a block of code, which it cannot leave."""
    return "```text\n" + visible(text, newlines=True).replace("```", "` ` `") + "\n```\n"


def _quoted(text: str) -> str:
    special = r"\`*_{}[]<>()#+!|~"
    return "".join(f"\\{character}" if character in special else character for character in visible(text))

"""A report as text: the same words for the terminal, Markdown and JSON. Whatever comes from students is escaped."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report, Verdict
from autograder.vocabulary.text import number, visible

WIDTH = 100
AGAIN = "python -m autograder check --item {item}"
MOST = 2_000  # characters of a counterexample
UNSEEN = "Every public case passes. Here is a small call, no case of the grader's, that does not:"
SMALLER = "The same in a smaller call:"
NOTHING_SMALL = "Every public case passes and a hidden one does not."
WORDS: Mapping[Verdict, str] = {"passed": "PASS", "missing": "TODO", "not_graded": "ERR "}


def item_lines(
    item: ItemResult, *, again: str = AGAIN, width: int = WIDTH, fit: bool = False, whole: bool = False
) -> list[str]:
    """Write one item as a student sees it: headline; for a failure message, hint, and the command that reruns it.

    fit     into a terminal of that width: every line, cut between words
    whole   the long title of a failure goes on in further lines, and is not cut
    """
    points = f"{number(item.points) if item.points is not None else '?'} / {number(item.max_points)}"
    head, room = f"{WORDS.get(item.verdict, 'FAIL')}  {item.item}  {item.title}", width - len(points) - 1
    rest: list[str] = []
    if len(head) > room and whole and item.verdict not in ("passed", "missing"):
        head, *rest = textwrap.wrap(head, room, subsequent_indent="      ", break_on_hyphens=False)
    elif len(head) > room:
        head = head[: room - 1]
        word = head.rfind(" ")
        head = f"{head[:word]} …" if fit and word > 2 * room // 3 else f"{head}…"
    lines = [f"{head:<{room}} {points}", *rest]
    if item.verdict == "passed":
        return lines
    message = [f"  {line}" for line in visible(item.message, newlines=True).splitlines()]
    lines += [part for line in message for part in _fitted(line, width)] if fit else message
    lines += textwrap.wrap(visible(item.hint), width, initial_indent="  ", subsequent_indent="  ")
    lines += [f"  {line}" for line in counterexample_lines(item)]
    if again and item.verdict not in ("missing", "not_graded") and not item.fails_unseen:
        lines.append(f"  Again: {again.format(item=item.item)}")
    return lines


def _fitted(line: str, width: int) -> list[str]:
    """Break a line between words into lines that begin as it does; a row of a table stays whole."""
    if len(line) <= width or "   " in line.strip():
        return [line]
    margin = line[: len(line) - len(line.lstrip())]
    wrapped = textwrap.TextWrapper(width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    return wrapped.wrap(line.strip())


def counterexample_lines(item: ItemResult) -> list[str]:
    """Show a call to paste that goes wrong, or say that there is none where only hidden cases fail."""
    if not item.counterexample:
        return [NOTHING_SMALL] if item.fails_unseen else []
    intro = UNSEEN if item.fails_unseen else SMALLER
    return [intro, *(f"  {line}" for line in visible(item.counterexample, MOST, newlines=True).splitlines())]


def report_text(report: Report, notes: Sequence[str] = (), *, width: int = WIDTH) -> str:
    """Write the whole report for a terminal: items, then points by function, then the sum.

    Items that one cause kept from being reached share a line, so that the cause stays in sight.
    """
    lines = [f"Note: {visible(note)}" for note in notes_beside(report, notes)]
    if report.cause:
        lines += [*visible(report.cause, newlines=True).splitlines(), ""]
    lost = [item for item in report.items if report.cause and item.message.startswith(NOT_REACHED)]
    for item in report.items:
        if item not in lost:
            lines += item_lines(item, width=width, fit=width < WIDTH, whole=True)
            lines += [] if item.verdict in ("passed", "missing") else [""]
    if lost:
        names = f"{NOT_REACHED}: {', '.join(item.item for item in lost)}."
        sentence = names if len(lost) < len(report.items) else "No item was reached."
        lines += textwrap.wrap(sentence, width, break_on_hyphens=False)
    if lines[-1:] != [""]:
        lines.append("")
    return "\n".join([*lines, *totals(report)])


def notes_beside(report: Report, notes: Sequence[str]) -> list[str]:
    """Leave out the notes that repeat the cause above the items."""
    return [note for note in notes if not note[1:] or note[1:] not in report.cause]


def totals(report: Report) -> list[str]:
    """Sum points by function, then over all."""
    by_function: dict[str, list[ItemResult]] = {}
    for item in report.items:
        by_function.setdefault(item.function, []).append(item)
    lines = [f"  {function:<24}{_sum(items):>10}" for function, items in by_function.items()]
    return [*lines, f"  {'total':<24}{_sum(report.items):>10}"]


def _sum(items: Iterable[ItemResult]) -> str:
    items = list(items)
    most = number(sum(item.max_points for item in items))
    if any(item.points is None for item in items):
        return f"not graded / {most}"
    return f"{number(sum(item.points or 0.0 for item in items))} / {most}"


def item_markdown(item: ItemResult) -> str:
    """Write what was wrong with one item as Markdown: message, hint, counterexample; "" where it passed."""
    if item.verdict == "passed":
        return ""
    hint = re.sub(r"([\\`*_{}\[\]<>()#+!|~])", r"\\\1", visible(item.hint))
    return fenced(item.message) + f"\n{hint}\n" + counterexample_markdown(item)


def counterexample_markdown(item: ItemResult) -> str:
    """Write a call to paste as Markdown; "" where there is none."""
    lines = counterexample_lines(item)
    return fenced("\n".join(lines)) if lines else ""


def fenced(text: str) -> str:
    """Make `text` a block of code, which it cannot leave."""
    return "```text\n" + visible(text, newlines=True).replace("```", "` ` `") + "\n```\n"

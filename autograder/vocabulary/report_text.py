"""Report → text: the same words for the terminal, Markdown and JSON. Pure; whatever comes from students is escaped."""

from __future__ import annotations

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
    """One item as a student sees it: headline; for a failure message, hint and what reruns it, if anything does.

    fit     into a terminal of that width: every line, cut between words
    whole   the title of what is wrong goes on in further lines where it is too long for one, and is not cut
    """
    points = f"{number(item.points) if item.points is not None else '?'} / {number(item.max_points)}"
    head, room = f"{WORDS.get(item.verdict, 'FAIL')}  {item.item}  {item.title}", width - len(points) - 1
    head, *rest = _headline(head, room, fit=fit, whole=whole and item.verdict not in ("passed", "missing"))
    lines = [f"{head:<{room}} {points}", *rest]
    if item.verdict == "passed":
        return lines
    message = [f"  {line}" for line in visible(item.message, newlines=True).splitlines()]
    lines += [one for line in message for one in _fitted(line, width)] if fit else message
    lines += textwrap.wrap(visible(item.hint), width, initial_indent="  ", subsequent_indent="  ")
    lines += [f"  {line}" for line in counterexample_lines(item)]
    if again and can_be_seen_again(item):
        lines.append(f"  Again: {again.format(item=item.item)}")
    return lines


def _headline(head: str, room: int, *, fit: bool, whole: bool) -> list[str]:
    """A headline in one line, which may end in `…`; or whole, its further lines further in than what follows."""
    if len(head) <= room:
        return [head]
    if whole:
        return textwrap.wrap(head, room, subsequent_indent="      ", break_on_hyphens=False)
    return [_cut(head, room) if fit else f"{head[: room - 1]}…"]


def _cut(head: str, room: int) -> str:
    """A headline that ends in `…`, after a whole word where that leaves most of it."""
    kept = head[: room - 1]
    word = kept.rfind(" ")
    return f"{kept[:word]} …" if word > 2 * room // 3 else f"{kept}…"


def _fitted(line: str, width: int) -> list[str]:
    """A line as lines of that width, which begin as it does; no word is broken, and no row of a table."""
    if len(line) <= width or "   " in line.strip():
        return [line]
    margin = line[: len(line) - len(line.lstrip())]
    wrapped = textwrap.TextWrapper(width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    return wrapped.wrap(line.strip())


def counterexample_lines(item: ItemResult) -> list[str]:
    """A call to paste that goes wrong; or that there is none, where only hidden cases fail; nothing elsewhere."""
    if not item.counterexample:
        return [NOTHING_SMALL] if item.fails_unseen else []
    intro = UNSEEN if item.fails_unseen else SMALLER
    return [intro, *(f"  {line}" for line in visible(item.counterexample, MOST, newlines=True).splitlines())]


def can_be_seen_again(item: ItemResult) -> bool:
    """Whether running the public cases again would show what is wrong."""
    return item.verdict not in ("passed", "missing", "not_graded") and not item.fails_unseen


def report_text(report: Report, notes: Sequence[str] = (), *, width: int = WIDTH) -> str:
    """The whole report for a terminal: items, then points by function, then the sum.

    What one cause kept from being reached is a line, not a screen for each item: the cause stays in sight.
    """
    lines = [f"Note: {visible(note)}" for note in notes_beside(report, notes)]
    lines += [*visible(report.cause, newlines=True).splitlines(), ""] if report.cause else []
    lost = [item for item in report.items if report.cause and item.message.startswith(NOT_REACHED)]
    for item in (item for item in report.items if item not in lost):
        lines += [
            *item_lines(item, width=width, fit=width < WIDTH, whole=True),
            *([] if item.verdict in ("passed", "missing") else [""]),
        ]
    if lost:
        names = f"{NOT_REACHED}: {', '.join(item.item for item in lost)}."
        told = names if len(lost) < len(report.items) else "No item was reached."
        lines += textwrap.wrap(told, width, break_on_hyphens=False)
    apart = [] if lines[-1:] == [""] else [""]
    return "\n".join([*lines, *apart, *totals(report)])


def notes_beside(report: Report, notes: Sequence[str]) -> list[str]:
    """The notes that say something else than the cause above the items."""
    return [note for note in notes if not note[1:] or note[1:] not in report.cause]


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
    return fenced(item.message) + f"\n{_quoted(item.hint)}\n" + counterexample_markdown(item)


def counterexample_markdown(item: ItemResult) -> str:
    """What a call to paste looks like in Markdown; "" where there is none."""
    lines = counterexample_lines(item)
    return fenced("\n".join(lines)) if lines else ""


def fenced(text: str) -> str:
    """`text` as a block of code, which it cannot leave."""
    return "```text\n" + visible(text, newlines=True).replace("```", "` ` `") + "\n```\n"


def _quoted(text: str) -> str:
    special = r"\`*_{}[]<>()#+!|~"
    return "".join(f"\\{character}" if character in special else character for character in visible(text))

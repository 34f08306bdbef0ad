"""A report as text: the same words for the terminal, Markdown and JSON. Whatever comes from students is escaped."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report, Verdict
from autograder.vocabulary.text import number, visible

WIDTH = 100
AGAIN = "python -m autograder check --item {item}"
MOST = 2_000  # characters of a counterexample
UNSEEN = "Every public case passes. Here is a small call, no case of the grader's, that does not:"
SMALLER = "The same in a smaller call:"
UNWRITTEN = " is not implemented yet."
NOTHING_SMALL = "Every public case passes and a hidden one does not."
WORDS: Mapping[Verdict, str] = {"passed": "PASS", "missing": "TODO", "not_graded": "ERR "}


def item_lines(
    item: ItemResult, *, again: str = AGAIN, width: int = WIDTH, place: Sequence[str] = (), like: str = ""
) -> list[str]:
    """Write one item as a student sees it: headline; for a failure what `explanation` says."""
    return [*headline(item, width), *explanation(item, again=again, width=width, place=place, like=like)]


def headline(item: ItemResult, width: int = WIDTH) -> list[str]:
    """Write verdict, name, title and points; a long title goes on in further lines."""
    points = f"{'?' if item.points is None else number(item.points)} / {number(item.max_points)}"
    text, room = f"{WORDS.get(item.verdict, 'FAIL')}  {item.item}  {item.title}", width - len(points) - 1
    first, *rest = textwrap.wrap(text, room, subsequent_indent="      ", break_on_hyphens=False)
    return [f"{first:<{room}} {points}", *rest]


def explanation(
    item: ItemResult, *, again: str = AGAIN, width: int = WIDTH, place: Sequence[str] = (), like: str = ""
) -> list[str]:
    """Write what is wrong with an item: message, place, hint, counterexample, and the command to run it again.

    place   the line of the submission that is at fault, and those around it
    like    an item above that has the same hint and place
    """
    if item.verdict == "passed":
        return []
    before, found, after = item.message.partition(f"\n{place[0]}\n" if place else "\0")
    message = "\n".join([before, *after.split("\n")[1:]]) if found else item.message  # the place shows that line
    lines = []
    for line in visible(message, newlines=True).splitlines():
        margin = " " * min(2 + len(line) - len(line.lstrip()), width // 2)
        is_row = "   " in line.strip()  # of a table, which stays whole
        fold = textwrap.TextWrapper(width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
        lines += [f"  {line}"] if is_row or len(line) + 2 <= width else fold.wrap(line.strip())
    if like:
        where = ["place" if place[0].startswith("Somewhere") else "line"] if place else []
        both = " and ".join([*(["hint"] if item.hint else []), *where])
        lines.append(f"  {both.capitalize()}: as for {like}.")
    else:
        lines += [f"  {visible(line)}" for line in place]
        lines += textwrap.wrap(visible(item.hint), width, initial_indent="  ", subsequent_indent="  ")
    lines += [f"  {line}" for line in counterexample_lines(item)]
    if again and item.verdict not in ("missing", "not_graded") and not item.fails_unseen:
        lines.append(f"  Again: {again.format(item=item.item)}")
    return lines


def counterexample_lines(item: ItemResult) -> list[str]:
    """Show a call to paste that goes wrong, or say that there is none where only hidden cases fail."""
    if not item.counterexample:
        return [NOTHING_SMALL] if item.fails_unseen else []
    intro = UNSEEN if item.fails_unseen else SMALLER
    return [intro, *(f"  {line}" for line in visible(item.counterexample, MOST, newlines=True).splitlines())]


def report_text(
    report: Report,
    notes: Sequence[str] = (),
    *,
    width: int = WIDTH,
    places: Mapping[str, Sequence[str]] = MappingProxyType({}),
    each: bool = False,
    brief: Collection[str] = (),
) -> str:
    """Write the whole report for a terminal: what is wrong, then a line for each function, the wrong ones last.

    Items that one cause kept from being reached share a line, so that the cause stays in sight.

    places   item → see `item_lines`
    each     a line for each item that passed or is not written, too, in place of the lines for functions
    brief    items that are as they were before: headlines alone of those that failed, and no line of functions where
             all are so and nothing is wrong
    """
    lines = [f"Note: {visible(note)}" for note in notes_beside(report, notes)]
    if report.cause:
        lines += [*visible(report.cause, newlines=True).splitlines(), ""]
    lost = [item for item in report.items if report.cause and item.is_unreached]
    shown: dict[object, ItemResult] = {}
    for item in report.items:
        is_wrong = item.verdict not in ("passed", "missing")
        if item in lost or not (is_wrong or each):
            continue
        place = places.get(item.item, ())
        key = (item.function, item.hint, *place)
        before = shown.setdefault(key, item) if item.hint or place else item
        like = "" if before is item else before.item
        lines += headline(item, width)
        if item.item in brief:
            continue
        if like and (item.message, item.counterexample) == (before.message, before.counterexample):
            lines += [f"  As for {like}.", ""]
        else:
            lines += [*explanation(item, width=width, place=place, like=like), *([""] if is_wrong else [])]
    if lost:
        names = f"{NOT_REACHED}: {', '.join(item.item for item in lost)}."
        sentence = names if len(lost) < len(report.items) else "No item was reached."
        lines += textwrap.wrap(sentence, width, break_on_hyphens=False)
    if lines[-1:] not in ([""], []):
        lines.append("")
    return "\n".join([*lines, *totals(report, width, brief)[-1 if each else 0 :]])


def notes_beside(report: Report, notes: Sequence[str]) -> list[str]:
    """Leave out the notes that repeat the cause above the items."""
    return [note for note in notes if not note[1:] or note[1:] not in report.cause]


def totals(report: Report, width: int = WIDTH, brief: Collection[str] = ()) -> list[str]:
    """Write a line for each function, those with something wrong last and its items by name, and the sum.

    brief    see `report_text`
    """
    by_function: dict[str, list[ItemResult]] = {}
    for item in report.items:
        by_function.setdefault(item.function, []).append(item)
    rows: list[tuple[str, str, list[ItemResult]]] = []
    for function, items in by_function.items():
        words = {WORDS.get(item.verdict, "FAIL") for item in items}
        worst = next(word for word in ("FAIL", "ERR ", "TODO", "PASS") if word in words)
        if worst in ("FAIL", "ERR ") or not {item.item for item in items}.issubset(brief):
            rows.append((worst, function, items))
    rows.sort(key=lambda row: ("PASS", "TODO", "ERR ", "FAIL").index(row[0]))
    name_width = max(map(len, (*by_function, "total")))
    lines = []
    for word, function, items in [*rows, ("    ", "total", list(report.items))]:
        points = [item.points for item in items]
        earned = "?" if None in points else number(round(sum(value or 0.0 for value in points), 2))
        score = f"{earned} / {number(sum(item.max_points for item in items))}"
        start = f"{word}  {function:<{name_width}} {score:>11}"
        lost = [item for item in items if item.verdict != "passed" and not item.is_unreached]
        more = ", ".join(item.item for item in lost if word in ("FAIL", "ERR "))
        if word == "TODO":  # why, where it is no stub: it has another name, or its cell could not be read
            more = " ".join(dict.fromkeys(item.message for item in lost if not item.message.endswith(UNWRITTEN)))
        indent = " " * min(len(start) + 2, width // 2)
        text = f"{start}  {visible(more)}"
        lines += textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) if more else [start]
    return lines


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

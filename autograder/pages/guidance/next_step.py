"""A report → the one thing to do next, in a sentence, in the order in which the functions build on each other."""

from __future__ import annotations

import re

from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report
from autograder.vocabulary.text import visible

SENTENCE = re.compile(r"(?<=[.?!])\s")
ELSEWHERE = re.compile(r"(\S+) fails too: start there\.")  # as `grading.remarks.hints` words it
ALLOWED = re.compile(r" \(allowed: [^)]*\)$")
MOST = 240  # characters
UNSEEN = "every public case passes, and a hidden one fails."


def next_step(report: Report) -> tuple[str, str]:
    """What to start with: the item and what is known of it; ("", sentence) where it is no item; ("", "") if nothing.

    Items stand in the order of items.toml, in which functions build on each other.
    """
    if report.cause:
        lost = sum(is_unreached(item) for item in report.items)
        return "", f"Start with the box below: {_items(lost)} not reached because of it." if lost else ""
    left = {item.item: item for item in report.items if item.verdict not in ("passed", "not_graded")}
    start = next(iter(left.values()), None)
    if start is None:
        return "", ""
    simpler = ELSEWHERE.fullmatch(start.hint)
    start = left.get(simpler[1], start) if simpler else start
    return start.item, about(start)


def is_unreached(item: ItemResult) -> bool:
    """Whether something outside it kept an item from being reached."""
    return item.verdict not in ("passed", "not_graded") and item.message.startswith(NOT_REACHED)


def about(item: ItemResult) -> str:
    """The shortest thing that is known of a failure."""
    if item.verdict == "missing":
        return "it is not implemented yet."
    if item.fails_unseen:
        return f"{UNSEEN} {_sentence(item.hint)}" if item.mistakes else UNSEEN
    return _sentence(item.hint or _told(item.message))


def _told(message: str) -> str:
    """What a message says in words: of values that differ, what stands beside the table of them."""
    head, *rest = message.strip().split("\n")
    if not head.endswith("]"):
        return message
    words = [line for line in rest if not line.startswith(" ")]
    conclusions = [line for line in words if line.endswith(".")]
    return (conclusions or [f"{ALLOWED.sub('', line)}." for line in words] or [message])[0]


def _sentence(text: str) -> str:
    first = SENTENCE.split(text.strip(), maxsplit=1)[0] if text.strip() else ""
    return visible(first.splitlines()[0] if first else "", MOST)


def _items(count: int) -> str:
    return "one item was" if count == 1 else f"{count} items were"

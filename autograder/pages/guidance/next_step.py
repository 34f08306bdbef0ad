"""A report → the one thing to do next, in a sentence: what is worth most, and first what others build on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report
from autograder.vocabulary.text import visible

SENTENCE = re.compile(r"(?<=[.?!])\s")
ELSEWHERE = re.compile(
    r"(\S+) fails too: (if you call \S+ here, )?start there\."
)  # as `grading.remarks.hints` words it
ALLOWED = re.compile(r" \(allowed: [^)]*\)$")
EARLIER = re.compile(
    r"The first .*(?:case is|cases are) right\. This one is not: "
)  # as `grading.remarks.wording` words it
COUNTED = re.compile(r"(\d+ of \d+ values|its value) differs?\b")
MOST = 240  # characters
COMPARABLE = 1 / 4  # of the most points that one thing would win: what would win less is left for later
T = TypeVar("T")
UNSEEN = "every public case passes, and a hidden one fails."
SHOWN = "A call that goes wrong is shown with it."


def next_step(report: Report) -> tuple[str, str]:
    """What to start with: the item and what is known of it; ("", sentence) where it is no item; ("", "") if nothing.

    Functions stand in the order of items.toml, in which they build on each other. It is the first of them that would
    win a quarter of what the most rewarding one would: a slip worth 0.25 waits while 20 points are to be had, and of
    comparable ones the one comes first that others build on. Of that function's items, those of which a public case
    fails before the others, since such a case can be seen and run, it is the first by the same rule. Where its hint
    names another item that fails, it is that one, whatever it is worth.
    """
    if report.cause:
        lost = sum(is_unreached(item) for item in report.items)
        return "", f"Start with the box below: {_items(lost)} not reached because of it." if lost else ""
    left = {item.item: item for item in report.items if item.verdict not in ("passed", "not_graded")}
    if not left:
        return "", ""
    to_win: dict[str, float] = {}
    for item in left.values():
        to_win[item.function] = to_win.get(item.function, 0.0) + _lost(item)
    function = _first_worthwhile(to_win, to_win.__getitem__)
    own = [item for item in left.values() if item.function == function]
    start = _first_worthwhile([item for item in own if not item.fails_unseen] or own, _lost)
    simpler = ELSEWHERE.fullmatch(start.hint)
    start = left.get(simpler[1], start) if simpler else start
    return start.item, about(start)


def _lost(item: ItemResult) -> float:
    return item.max_points - (item.points or 0.0)


def _first_worthwhile(choices: Iterable[T], worth: Callable[[T], float]) -> T:
    """The first that is worth COMPARABLE of the best or more; there is one."""
    several = list(choices)
    least = COMPARABLE * max(map(worth, several))
    return next(one for one in several if worth(one) >= least)


def is_unreached(item: ItemResult) -> bool:
    """Whether something outside it kept an item from being reached."""
    return item.verdict not in ("passed", "not_graded") and item.message.startswith(NOT_REACHED)


def about(item: ItemResult) -> str:
    """The shortest thing that is known of a failure."""
    if item.verdict == "missing":
        return "it is not implemented yet."
    if item.fails_unseen:
        more = _question(item.hint) if item.mistakes else SHOWN * bool(item.counterexample)
        return f"{UNSEEN} {more}".strip()
    return _question(item.hint) if item.hint else _sentence(_told(item.message))


def _told(message: str) -> str:
    """What a message says in words: of values that differ, what stands beside the table of them."""
    head, *rest = message.strip().split("\n")
    case = EARLIER.sub("", head) if EARLIER.match(head) else ""
    if case and rest:
        head, *rest = rest
    if not head.endswith("]") and not (rest and COUNTED.match(rest[0])):
        return "\n".join((head, *rest))
    words = [line for line in rest if not line.startswith((" ", "right: ", "… "))]
    if conclusions := [line for line in words if line.endswith((".", "?"))]:
        return conclusions[0]
    if case:
        return f"this case is not right: {case}"
    told = [line for line in words if not COUNTED.match(line)] or words
    return f"{ALLOWED.sub('', told[0])} ({head.split('   ')[0]})." if told else head


def _question(hint: str) -> str:
    """A hint up to its first question, for what stands before tells little alone; else its first sentence."""
    sentences = SENTENCE.split(hint.strip().split("\n")[0])
    asked = next((n for n, sentence in enumerate(sentences, 1) if sentence.endswith("?")), 1)
    text = " ".join(sentences[:asked])
    return text if len(text) <= MOST else _sentence(hint)


def _sentence(text: str) -> str:
    first = SENTENCE.split(text.strip(), maxsplit=1)[0] if text.strip() else ""
    return visible(first.splitlines()[0] if first else "", MOST)


def _items(count: int) -> str:
    return "one item was" if count == 1 else f"{count} items were"

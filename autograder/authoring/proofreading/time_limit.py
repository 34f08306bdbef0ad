"""An author's code that does not end: interrupted where it stands, so that its line can be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from autograder.authoring.declarations import Draft
from autograder.vocabulary.time_limit import time_limit

END = object()  # what comes after the last draft
MOST_SECONDS = 60.0  # of processor time, of one answer or one draft


def in_time(what: str) -> AbstractContextManager[None]:
    """Raise OutOfTimeError in the block where it takes MOST_SECONDS; `what` begins the sentence."""
    return time_limit(MOST_SECONDS, what)


def limited(draft: Draft) -> Draft:
    """The draft with an answer that ends."""
    answer: Callable[..., Any] = draft.answer

    def within(*arguments: Any) -> Any:
        with in_time(f"the oracle of {draft.case}"):
            return answer(*arguments)

    return replace(draft, answer=within) if callable(answer) else draft


def each_limited(drafts: Iterable[Any]) -> Iterator[Any]:
    """What yields drafts, with a limit for each."""
    running = iter(drafts)
    while True:
        with in_time("the next case"):
            found = next(running, END)
        if found is END:
            return
        yield limited(found) if isinstance(found, Draft) else found

"""An author's code that does not end: interrupted where it stands, so that its line can be told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from autograder.authoring.declarations import Draft

END = object()  # what comes after the last draft
MOST_SECONDS = 60.0  # of processor time, of one answer or one draft: a busy machine counts for nothing


class EndlessError(BaseException):
    """Raised inside code that has not ended in time; no `Exception`, which whoever tries other inputs would catch."""


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    """Raise EndlessError in the block where it takes MOST_SECONDS; without effect where there are no such timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise EndlessError(f"{what} has not ended after {MOST_SECONDS:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limited(draft: Draft) -> Draft:
    """The draft with an answer that ends."""
    answer: Callable[..., Any] = draft.answer

    def within(*arguments: Any) -> Any:
        with time_limit(f"the oracle of {draft.case}"):
            return answer(*arguments)

    return replace(draft, answer=within) if callable(answer) else draft


def each_limited(drafts: Iterable[Any]) -> Iterator[Any]:
    """What yields drafts, with a limit for each."""
    running = iter(drafts)
    while True:
        with time_limit("the next case"):
            found = next(running, END)
        if found is END:
            return
        yield limited(found) if isinstance(found, Draft) else found

"""Run a function of ours in a process of its own: generator code imports what it likes, and leaves no trace here."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

from autograder.vocabulary.errors import FixtureError

P = ParamSpec("P")
R = TypeVar("R")


def apart(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What `function` returns or raises, from a fresh interpreter. Function, arguments and result must be picklable.

    Ctrl-C reaches this process alone, which then ends the other.
    """
    context = multiprocessing.get_context("spawn")
    answers, their_end = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(their_end, function, arguments, named))
    with answers:
        with their_end, _without_interrupts():
            process.start()
        try:
            returned, raised = answers.recv()
        except EOFError as error:
            raise FixtureError(f"The process that ran {function.__name__} ended before it was done.") from error
        except BaseException:
            process.kill()
            raise
        finally:
            process.join()
    if raised is not None:
        raise raised
    result: R = returned
    return result


def _answer(
    answers: Connection, function: Callable[..., object], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    try:
        answers.send((function(*arguments, **named), None))
    except Exception as error:
        error.add_note(traceback.format_exc())
        answers.send((None, error))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: a process that is started meanwhile ignores it for good."""
    if threading.current_thread() is not threading.main_thread():  # no other may set how signals are handled
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""Run a function of ours in a process of its own: generator code imports what it likes, and leaves no trace here."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from autograder.errors import FixtureError

P = ParamSpec("P")
R = TypeVar("R")


def apart(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What `function` returns or raises, from a fresh interpreter. Function, arguments and result must be picklable."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *arguments, **named).result()
        except BrokenProcessPool as error:
            raise FixtureError(f"The process that ran {function.__name__} ended before it was done.") from error

"""One limit on time for code that may not end: which clock it goes by, what it raises, what it leaves behind."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

import pytest

from autograder.vocabulary import times
from autograder.vocabulary.times import OutOfTimeError, time_limit


def spin() -> None:
    while True:
        pass


@pytest.fixture
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock on the wall decide nothing: others may have the processor while a test runs."""
    monkeypatch.setattr(times, "MOST_WAITED", 10_000)


@pytest.mark.usefixtures("busy_machine")
def test_what_works_too_long_is_interrupted_and_named() -> None:
    told = r"^the loop has not ended after 0\.1 s of processor time$"
    with pytest.raises(OutOfTimeError, match=told), time_limit(0.1, "the loop"):
        spin()


def test_what_waits_is_interrupted_by_the_clock_on_the_wall_and_later() -> None:
    began = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"^this has not ended after 0\.6 s$"), time_limit(0.2):
        time.sleep(60)
    assert 0.6 <= time.monotonic() - began < 30


def catch_all_twice(caught: list[BaseException]) -> None:
    for _ in range(2):
        try:
            spin()
        except BaseException as error:
            caught.append(error)
    with contextlib.suppress(Exception):  # it is none
        spin()


def test_code_that_catches_whatever_comes_is_interrupted_again() -> None:
    caught: list[BaseException] = []
    with pytest.raises(OutOfTimeError), time_limit(0.1):
        catch_all_twice(caught)
    assert [type(error) for error in caught] == [OutOfTimeError] * 2


def test_what_ends_in_time_leaves_timer_and_handler_as_they_were() -> None:
    handler = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    timer = signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    try:
        with time_limit(60):
            assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(times.TICK, rel=0.1)
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL) == (pytest.approx(1000, abs=100), pytest.approx(7, rel=0.01))
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def nested() -> None:
    with time_limit(60, "inner"):
        pass
    spin()


@pytest.mark.usefixtures("busy_machine")
def test_the_outer_of_two_limits_holds_after_the_inner_one() -> None:
    with pytest.raises(OutOfTimeError, match="outer has"), time_limit(0.2, "outer"):
        nested()


def test_outside_the_main_thread_there_is_no_limit_and_no_error() -> None:
    ended = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.2)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]

"""Times: read within bounds, or refused in a sentence; limits on code that may not end."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.vocabulary import times
from autograder.vocabulary.times import FIRST_YEAR, LAST_YEAR, OutOfTimeError, moment, moment_or_none, time_limit

NOON = datetime(2027, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("2027-03-02 12:00:00.948203777 UTC", "2027-03-02T12:00Z", "2027-03-02 12:00:00,5 GMT", "2027-03-02 12:00:00"),
        *("2027-03-02 13:00:00 Europe/Berlin", "2027-03-02 04:00:00 -0800", "2027-03-02 04:00:00-08:00"),
    ],
)
def test_moment_is_read_however_it_is_written(text: str) -> None:
    digits = text.partition(".")[2][:6] or text.partition(",")[2][:1]
    assert moment(text, UTC) == NOON.replace(microsecond=int(digits.ljust(6, "0")))
    assert moment("2027-03-02 13:00", ZoneInfo("Europe/Berlin")) == NOON
    assert [moment("2027-03-02 13:00"), moment("2027-03-02")] == [datetime(2027, 3, 2, 13), datetime(2027, 3, 2)]


@pytest.mark.parametrize(
    "text",
    [
        *("0001-01-01 00:00:00 +2359", "9999-12-31 23:59:59 -2359", "1979-12-31 23:59", "2200-01-01 00:00"),
        *("2027-03-02 12:00 +99:99", "2027-03-02 12:00 ../../etc/passwd", "2027-03-02 12:00 Nowhere/Land"),
        *("2027-13-02 12:00", "1" * 5000, "٢٠٢٧-٠٣-٠٢ ١٢:٠٠", "\0", ""),
        *("2027-03-02T12:00:00" + "0" * 5000, "2027-03-02 12:00 " + "Z" * 5000),
    ],
    ids=range(14),
)
def test_no_moment_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time|lies in the year"):
        moment(text, UTC)
    assert moment_or_none(text) is None


WRITTEN = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)? ?([+-]\d\d:?\d\d|[A-Z]{1,4})?", re.ASCII)
ZONED = st.datetimes().map(str) | st.from_regex(WRITTEN, fullmatch=True)


@settings(max_examples=30)
@given(st.text(max_size=60) | ZONED)
def test_every_moment_read_can_be_reckoned_with(text: str) -> None:
    when = moment_or_none(text)
    if when is not None:
        assert when.tzinfo is not None
        in_utc = when.astimezone(UTC)
        assert FIRST_YEAR - 1 <= in_utc.year <= LAST_YEAR + 1
        assert (in_utc + timedelta(days=3660)) - in_utc == timedelta(days=3660)


# Limits on time


def spin() -> None:
    while True:
        pass


@pytest.fixture
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock on the wall decide nothing: others may have the processor while a test runs."""
    monkeypatch.setattr(times, "MOST_WAITED", 10_000)


@pytest.mark.usefixtures("busy_machine")
def test_working_code_is_interrupted_as_often_as_it_catches_that_and_by_the_outer_limit_too() -> None:
    caught: list[BaseException] = []

    def catch_all_twice() -> None:
        with time_limit(60, "inner"):
            pass
        for _ in range(2):
            try:
                spin()
            except BaseException as error:
                caught.append(error)
        with contextlib.suppress(Exception):  # it is none
            spin()

    message = r"^the loop has not ended after 0\.1 s of processor time$"
    with pytest.raises(OutOfTimeError, match=message), time_limit(0.1, "the loop"):
        catch_all_twice()
    assert [type(error) for error in caught] == [OutOfTimeError] * 2


def test_waiting_code_is_interrupted_later() -> None:
    began = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"^this has not ended after 0\.6 s$"), time_limit(0.2):
        time.sleep(60)
    assert 0.6 <= time.monotonic() - began < 30


def test_code_that_ends_leaves_timer_and_handler_as_they_were() -> None:
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

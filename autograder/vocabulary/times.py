"""Time: moments as platforms and students' files write them, and a limit on code that may not end."""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import threading
import time
import unicodedata
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo

# No moment that is read is so early or late that a zone, a day's grace or a subtraction leads out of the calendar.
FIRST_YEAR, LAST_YEAR = 1980, 2199
MOST_READ = 200  # characters

TICK = 0.1  # seconds between two looks at the clocks
MOST_WAITED = 3  # a busy machine may take so many times as long by the clock on the wall

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,12}))?)?\s*([^\s]{1,65})?", re.ASCII)
_WEEKDAY = re.compile(r"^(?:MON|TUE|TUES|WED|WEDNES|THU|THURS|FRI|SAT|SATUR|SUN)(?:DAY)? ")
_DAYS, _CLOCKS = ("%b %d", "%d %b", "%B %d", "%d %B"), ("%I:%M %p", "%H:%M")


def moment(text: str, zone: tzinfo | None = None) -> datetime:
    """Read a moment, which a student may have written: `2027-03-12 23:59`, `2027-03-12T22:59:00Z`.

    zone     of a text that names none; without one the moment has none either
    raises   nothing but ValueError, with the end of a sentence: it is none, or lies before 1980 or after 2199
    """
    match = _MOMENT.fullmatch(text.strip()) if len(text) <= MOST_READ else None
    if match is None:
        raise ValueError("is no time, as 2027-03-12 23:59:00 is one")
    day, clock, fraction, named = match.groups()
    try:
        if named in ("Z", "UTC", "GMT"):
            zone = UTC
        elif named and named[0] in "+-":
            zone = datetime.fromisoformat(f"2000-01-01T00:00{named}").tzinfo
        elif named:
            zone = zoneinfo.ZoneInfo(named)
        naive = datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(microsecond=int(f"{fraction or 0:0<6}"[:6]))
        aware = naive.replace(tzinfo=zone)
    except (ValueError, OSError, KeyError):  # zoneinfo raises KeyError, or what opening a strange name raises
        raise ValueError("is no time, as 2027-03-12 23:59:00 is one") from None
    return within_bounds(aware)


def within_bounds(when: datetime) -> datetime:
    """Return the same moment; raise ValueError with the end of a sentence where nothing can be handed in so far off."""
    if not FIRST_YEAR <= when.year <= LAST_YEAR:
        raise ValueError(f"lies in the year {when.year}, and not between {FIRST_YEAR} and {LAST_YEAR}")
    return when


def moment_or_none(text: str, zone: tzinfo | None = UTC) -> datetime | None:
    """Read a moment; None where `text` says none."""
    try:
        return moment(text, zone)
    except ValueError:
        return None


def moment_in_words(text: str) -> datetime | None:
    """Read a moment whose month is an English word, without a zone; None where `text` says none.

    Moodle writes `Friday, 12 March 2027, 11:59 PM`, Brightspace `Mar 2, 2027 1158 PM` or `2 Mar 2027 2358`.
    """
    if len(text) > MOST_READ:
        return None
    plain = " ".join(unicodedata.normalize("NFKC", text).replace(",", " ").upper().split())
    plain = re.sub(r"\bSEPT\b", "SEP", _WEEKDAY.sub("", plain))
    plain = re.sub(r"(\d):?(\d\d)( [AP]M)?$", r"\1:\2\3", plain)
    for day, clock in itertools.product(_DAYS, _CLOCKS):
        with contextlib.suppress(ValueError):
            return within_bounds(datetime.strptime(plain, f"{day} %Y {clock}"))
    return None


class OutOfTimeError(BaseException):
    """Code did not end in time. It is no `Exception`, which that code might catch."""


@contextmanager
def time_limit(seconds: float, what: str = "this") -> Iterator[None]:
    """Raise OutOfTimeError in the block once it has worked for `seconds`, and again if it catches that.

    Processor time counts, so that a busy machine makes nobody late; code that waits instead of working may take
    MOST_WAITED times as long. Limits nest. Without effect outside the main thread, and where the platform has no such
    timers. The exception can arrive in whatever runs in the block, a library's callback included: where that must not
    be, limit a process instead.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    busy, began, over = time.process_time(), time.monotonic(), False

    def look(number: int, frame: object) -> None:
        if over:
            return
        if time.process_time() - busy > seconds:
            raise OutOfTimeError(f"{what} has not ended after {seconds:g} s of processor time")
        if time.monotonic() - began > MOST_WAITED * seconds:
            raise OutOfTimeError(f"{what} has not ended after {MOST_WAITED * seconds:g} s")

    handler = signal.signal(signal.SIGALRM, look)
    timer = signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        over = True  # first of all: a tick that comes now interrupts nothing
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)

"""Moments as platforms, spreadsheets and students' files write them. There is no other reader, and it has bounds.

What a file says of a time may come from a student: nothing in it raises more than ValueError, and no moment is so early
or late that a zone, a day's grace or a subtraction leads out of the calendar.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, tzinfo

FIRST_YEAR, LAST_YEAR = 1980, 2199
MOST_READ = 200  # characters

_WRITTEN = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,12}))?)?\s*([^\s]{1,65})?",
    re.ASCII,
)


def moment(text: str, zone: tzinfo | None = None) -> datetime:
    """The moment that `text` says: `2027-03-12 23:59`, `2027-03-12T22:59:00Z`.

    zone     of a text that names none; without one the moment has none either
    raises   ValueError with the end of a sentence where it is none, or lies before 1980 or after 2199
    """
    found = _WRITTEN.fullmatch(text.strip()) if len(text) <= MOST_READ else None
    if found is None:
        raise ValueError("is no time, as 2027-03-12 23:59:00 is one")
    day, clock, fraction, named = found.groups()
    try:
        naive = datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(microsecond=int(f"{fraction or 0:0<6}"[:6]))
        aware = naive.replace(tzinfo=_zone(named) if named else zone)
    except (ValueError, OSError, KeyError):  # zoneinfo raises KeyError, or what opening a strange name raises
        raise ValueError("is no time, as 2027-03-12 23:59:00 is one") from None
    return within_bounds(aware)


def within_bounds(when: datetime) -> datetime:
    """The same moment; ValueError with the end of a sentence where it is so early or late that it can be no hand-in."""
    if not FIRST_YEAR <= when.year <= LAST_YEAR:
        raise ValueError(f"lies in the year {when.year}, and not between {FIRST_YEAR} and {LAST_YEAR}")
    return when


def moment_or_none(text: str, zone: tzinfo | None = UTC) -> datetime | None:
    """The same; None where `text` says none."""
    try:
        return moment(text, zone)
    except ValueError:
        return None


def moment_in(text: str, form: str) -> datetime | None:
    """The moment that `text` says in that form of `strptime`; None where it says none."""
    try:
        return within_bounds(datetime.strptime(text, form))
    except ValueError:
        return None


def _zone(name: str) -> tzinfo | None:
    """The zone of that name, or of that offset; ValueError, OSError or KeyError where there is none."""
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if name[0] in "+-":
        return datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
    return zoneinfo.ZoneInfo(name)

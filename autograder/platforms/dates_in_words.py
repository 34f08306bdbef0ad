"""Dates as Moodle words them in any language: `Friday, 12 March 2027, 11:59 PM`, `2027年 03月 12日(金曜日) 23:59`.

The names of months, weekdays and halves of a day are Unicode's (CLDR, in the package babel), where PHP's
`IntlDateFormatter` has them from. No order of day and month is assumed: the weekday tells a right reading from a wrong
one. What languages read as different moments, or none reads, is not guessed.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.times import MOST_READ, within_bounds

NUMBERS = re.compile(r"\D*(?:(\d{4})\D+(\d\d?)|(\d\d?)\D+(\d{4}))(\D+)(\d\d?)\D{1,3}(\d\d)[\W_]*")
WORD = re.compile(r"[^\W\d_]{2}")
ENGLISH = {"am": 0, "pm": 1}  # also where a language has no names of its own

Names = Mapping[str, int]


def moments(texts: Sequence[str]) -> list[datetime] | None:
    """What texts in one language say, in the platform's time zone; None where that is not sure."""
    plain = [_plain(text[:MOST_READ]) for text in texts]
    readings = set()
    for language in _languages():
        read = list(itertools.takewhile(bool, (_moment(text, *language) for text in plain)))
        if len(read) == len(plain):
            readings.add(tuple(read))
    return [when for when in readings.pop() if when] if len(readings) == 1 else None


def _moment(text: str, months: Names, weekdays: Names, halves: Names) -> datetime | None:
    weekday, rest = _taken(text, weekdays)
    month, rest = _taken(rest, months)
    half, rest = _taken(rest, halves)
    numbers = NUMBERS.fullmatch(rest)
    if numbers is None or month is None:
        return None
    year, day = (numbers[1], numbers[2]) if numbers[1] else (numbers[4], numbers[3])
    hour, minute = int(numbers[6]), int(numbers[7])
    if half is None and hour <= 12 and WORD.search(numbers[5]):
        return None  # the word may say which half of the day it is
    if half is not None:
        hour = hour % 12 + 12 * half if 1 <= hour <= 12 else 24
    try:
        when = within_bounds(datetime(int(year), month, int(day), hour, minute))
    except ValueError:
        return None
    return when if when.weekday() == weekday else None


def _taken(text: str, names: Names) -> tuple[int | None, str]:
    """What the longest of the names in a text stands for, and the text without it."""
    for name in sorted((name for name in names if name in text), key=len, reverse=True):
        if found := re.search(f"{_edge(name[0], '<!')}{re.escape(name)}{_edge(name[-1], '!')}", text):
            return names[name], f"{text[: found.start()]} {text[found.end() :]}"
    return None, text


def _edge(character: str, side: str) -> str:
    """What must not stand beside a name: a digit beside a digit, a letter beside one of a script with small letters."""
    if character.isdigit():
        return rf"(?{side}\d)" + ("0?" if side == "<!" else "")
    return rf"(?{side}[^\W\d_])" if character.islower() else ""


@functools.cache
def _languages() -> tuple[tuple[Names, Names, Names], ...]:
    """Month names (1 to 12), weekdays (0 for Monday) and halves of a day (0 and 1) of each language."""
    try:
        from babel import Locale, localedata
    except ModuleNotFoundError:
        raise UsageError("Reading dates in words needs the package babel: python -m pip install babel.") from None
    known = [Locale.parse(name) for name in localedata.locale_identifiers() if "_" not in name]
    found = []
    for one in known:
        found.append((_names(one.months), _names(one.days), ENGLISH | _names(one.day_periods, ENGLISH)))
    return tuple(found)


def _names(of: Any, numbers: Mapping[Any, int] | None = None) -> dict[str, int]:
    """Each name in one of babel's tables, small as `_moment` has it, and the number of what it stands for."""
    tables = [of[form].get(width, {}) for form in ("stand-alone", "format") for width in ("abbreviated", "wide")]
    pairs = [(numbers.get(key) if numbers else key, name) for table in tables for key, name in table.items()]
    return {_plain(name): number for number, name in pairs if name and number is not None}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()

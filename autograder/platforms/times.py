"""Read when students handed in, from what a platform gives as it is: a table, a list of its API, or the download.

Moodle's grading worksheet, in any language; Gradescope's grades; Canvas's list of submissions in JSON, whose pages may
stand one behind the other; any CSV with a column of names or ids and one of times. Of a download, what its names and
files say (`layouts.py`).
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from autograder.gradebook.roster import Roster, find_rows, keys_of, person_of, plain_heading
from autograder.grading.assignment import Assignment
from autograder.platforms import moodle
from autograder.platforms.layouts import gathered
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, read_table, read_text
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import MOST_READ, moment_or_none, within_bounds

COLUMNS = ("submitted", "submitted at", "submission time", "submission date", "last modified (submission)")
ADVICE = "write it as 2027-03-12 23:59, or switch your platform to English and download the file again"


class Row(NamedTuple):
    """When somebody handed in, as it is written.

    keys       what they may be called
    identity   as reports of this platform have it
    student    the name in a table that calls students by the names of reports
    """

    keys: frozenset[str]
    text: str
    identity: str = ""
    student: str = ""


def read_times(
    path: Path, assignment: Assignment, people: Iterable[Candidate | Report], roster: Roster | None = None
) -> dict[str, datetime]:
    """Student → when they handed in, without a zone where the file names none; UsageError where it cannot be read."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        with gathered([path], assignment.module, roster, class_zip=True, functions=assignment.functions) as class_:
            seen = {each.student: each.submitted for each in class_.candidates if each.submitted}
        if not seen:
            raise UsageError(
                f"{path} does not say when students handed in: see the guide for where your platform does."
            )
        return seen
    rows = _of_canvas(path) if path.suffix.lower() == ".json" else _in_table(read_table(path), path)
    times: dict[Row, datetime] = {}
    for row, when in zip(rows, _moments([row.text for row in rows], path), strict=True):
        who = row._replace(text="")
        before = times.get(who, when)
        if (before.tzinfo is None) != (when.tzinfo is None):
            raise UsageError(f"{path}: of two times of {visible(row.student, 80)!r} one names a zone and one does not.")
        times[who] = max(before, when)
    ids = [row.identity for row in times]
    found = find_rows(people, [row.keys for row in times], roster, ids if all(ids) else ())
    listed = list(times.values())
    by_name = {row.student: when for row, when in times.items() if row.student}
    return by_name | {report.student: listed[at] for at, report in found.rows.items()}


def _moments(texts: Sequence[str], path: Path) -> list[datetime]:
    """Read the texts, all as numbers or all in words."""
    by_numbers = [moment_or_none(text, None) for text in texts]
    moments = moments_in_words(texts) if None in by_numbers else [when for when in by_numbers if when]
    if moments is None:
        wrong = next(text for text, when in zip(texts, by_numbers, strict=True) if when is None)
        raise UsageError(f"{path}: {visible(wrong, 80)!r} is no time that can be read for sure: {ADVICE}.")
    return moments


def _in_table(table: Table, path: Path) -> list[Row]:
    headings = [plain_heading(cell) for cell in table.header]
    worksheet = moodle.times_in(table) if "student" not in headings else None
    if worksheet is not None:
        return [Row(keys, text, f"moodle:{participant}") for participant, keys, text in worksheet if text]
    at = [place for place, heading in enumerate(headings) if heading in COLUMNS]
    if len(at) != 1:
        columns = ", ".join(visible(cell, 40) for cell in table.header)
        raise UsageError(f"{path} has no column that says when students handed in, as `submitted` would: {columns}.")
    rows = []
    for line, row in zip(table.lines, table.rows, strict=True):
        person = person_of(dict(zip(headings, row, strict=True)))
        if row[at[0]].strip():
            if not person.keys:
                raise UsageError(f"{path}, line {line}: a row without a student.")
            rows.append(Row(person.keys, row[at[0]].strip(), "", person.student if "student" in headings else ""))
    return rows


def _of_canvas(path: Path) -> list[Row]:
    """Read `submitted_at` by user. A browser gets `while(1);` before each page (canvas-lms: doc/api/submissions)."""
    text, pages = read_text(path).replace("while(1);", "").strip(), list[Any]()
    try:
        while text:
            page, end = json.JSONDecoder().raw_decode(text)
            pages += page
            text = text[end:].strip()
        listed = [(str(each["user_id"]), each["submitted_at"]) for each in pages]
    except (TypeError, KeyError, ValueError, RecursionError):
        raise UsageError(f"{path} is no list of submissions as Canvas's API gives it.") from None
    return [Row(keys_of({user}), str(when), f"canvas:{user}") for user, when in listed if when]


# Dates in words
#
# As Moodle writes them in any language: `Friday, 12 March 2027, 11:59 PM`, `2027年 03月 12日(金曜日) 23:59`. The names
# of months, weekdays and halves of a day are Unicode's (CLDR, in the package babel), where PHP's `IntlDateFormatter`
# has them from. No order of day and month is assumed: the weekday tells a right reading from a wrong one.

NUMBERS = re.compile(r"\D*(?:(\d{4})\D+(\d\d?)|(\d\d?)\D+(\d{4}))(\D+)(\d\d?)\D{1,3}(\d\d)[\W_]*")
WORD = re.compile(r"[^\W\d_]{2}")
ENGLISH_HALVES = {"am": 0, "pm": 1}  # also where a language has no names of its own

Names = Mapping[str, int]


def moments_in_words(texts: Sequence[str]) -> list[datetime] | None:
    """Read texts in one language, in the platform's time zone; None where no language reads all, or two disagree."""
    plain = [_plain(text[:MOST_READ]) for text in texts]
    readings = set()
    for language in _languages():
        read = list(itertools.takewhile(bool, (_moment(text, *language) for text in plain)))
        if len(read) == len(plain):
            readings.add(tuple(read))
    return [when for when in readings.pop() if when] if len(readings) == 1 else None


def _moment(text: str, months: Names, weekdays: Names, halves: Names) -> datetime | None:
    weekday, rest = _take(text, weekdays)
    month, rest = _take(rest, months)
    half, rest = _take(rest, halves)
    numbers = NUMBERS.fullmatch(rest)
    if numbers is None or month is None:
        return None
    year, day = (numbers[1], numbers[2]) if numbers[1] else (numbers[4], numbers[3])
    hour, minute = int(numbers[6]), int(numbers[7])
    if half is None and hour <= 12 and WORD.search(numbers[5]):
        return None  # the word may say which half of the day it is
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * half
    try:
        when = within_bounds(datetime(int(year), month, int(day), hour, minute))
    except ValueError:
        return None
    return when if when.weekday() == weekday else None


def _take(text: str, names: Names) -> tuple[int | None, str]:
    """What the longest of the names in a text stands for, and the text without it. A name is a whole word.

    Beside a digit stands no other digit; beside a letter none where the script has small letters. Scripts without them
    write words in one run.
    """
    for name in sorted((name for name in names if name in text), key=len, reverse=True):
        before = r"(?<!\d)0?" if name[0].isdigit() else r"(?<![^\W\d_])" if name[0].islower() else ""
        after = r"(?!\d)" if name[-1].isdigit() else r"(?![^\W\d_])" if name[-1].islower() else ""
        if match := re.search(f"{before}{re.escape(name)}{after}", text):
            return names[name], f"{text[: match.start()]} {text[match.end() :]}"
    return None, text


@functools.cache
def _languages() -> tuple[tuple[Names, Names, Names], ...]:
    """Month names (1 to 12), weekdays (0 for Monday) and halves of a day (0 and 1) of each language."""
    try:
        from babel import Locale, localedata
    except ModuleNotFoundError:
        raise UsageError("Reading dates in words needs the package babel: python -m pip install babel.") from None

    def names(tables: Any, numbers: Names | None = None) -> dict[str, int]:
        by_name = {}
        for form, width in itertools.product(("stand-alone", "format"), ("abbreviated", "wide")):
            for key, name in tables[form].get(width, {}).items():
                value = numbers.get(key) if numbers else key
                if name and value is not None:
                    by_name[_plain(name)] = value
        return by_name

    languages = [Locale.parse(name) for name in localedata.locale_identifiers() if "_" not in name]
    halves = [ENGLISH_HALVES | names(each.day_periods, ENGLISH_HALVES) for each in languages]
    return tuple((names(each.months), names(each.days), half) for each, half in zip(languages, halves, strict=True))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()

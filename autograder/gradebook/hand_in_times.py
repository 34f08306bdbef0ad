"""When what was graded was handed in, as a folder of grades keeps it: student,submitted.

timestamps.csv   what staff gave with --timestamps, which counts
handed_in.csv    what the download said that was graded

A time that names no zone is the platform's own, and of the policy's `timezone`.
"""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping
from pathlib import Path

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import read_rows, write_atomically
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment

GIVEN, SEEN = "timestamps.csv", "handed_in.csv"

Times = Mapping[str, datetime.datetime]


def read_times(path: Path) -> dict[str, datetime.datetime]:
    """The times in a CSV file with the columns student,submitted, one for each."""
    times: dict[str, datetime.datetime] = {}
    for row in read_rows(path, ("student", "submitted"), others=True):
        if not row["student"]:
            raise row.wrong("a row without a student.")
        try:
            times[row["student"]] = moment(row["submitted"])
        except ValueError as error:
            raise row.wrong(f"{visible(row['submitted'], 60)!r} {error}.") from None
    return times


def to_csv(times: Times) -> bytes:
    """The file that `read_times` reads."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("student", "submitted"))
    writer.writerows((student, when.isoformat(" ")) for student, when in sorted(times.items()))
    return stream.getvalue().encode()


def keep_seen(out: Path, seen: Times) -> None:
    """Keep what a download said; what is known of others stays."""
    kept = _kept(out / SEEN)
    if (now := {**kept, **seen}) != kept:
        write_atomically(out / SEEN, to_csv(now))


def times_of(out: Path, zone: datetime.tzinfo | None, given: Times | None = None, seen: Times | None = None) -> Times:
    """When students handed in, as given or kept in `out`. Raises UsageError for a time without a zone where none is."""
    times = {**_kept(out / SEEN), **(seen or {}), **(_kept(out / GIVEN) if given is None else given)}
    for student, when in times.items():
        if when.tzinfo is None and zone is None:
            what = f"The hand-in of {visible(student, 80)}, {when:%Y-%m-%d %H:%M}, names no time zone"
            raise UsageError(f"{what}: give `timezone` in the policy, which is that of your platform.")
    return {student: when if when.tzinfo else when.replace(tzinfo=zone) for student, when in times.items()}


def _kept(path: Path) -> dict[str, datetime.datetime]:
    return read_times(path) if path.is_file() else {}

"""Gradescope: its export of a class is read; its results.json is written, a test for each item or two.

Who handed in what stands in submission_metadata.yml. It is read as a stream of events: no object is built, no alias
followed, so what it says of other things (the output of every test of every submission) costs nothing, and a file that
was made to explode does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from autograder.gradebook.class_reports import FinalReport, why_not_graded
from autograder.platforms.hand_in import HandIn, is_folder, parse_time
from autograder.submissions.class_zips import MAX_METADATA, METADATA
from autograder.submissions.submission import shown_name
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import CaseResult, ItemResult, Report
from autograder.vocabulary.report_text import fenced, item_markdown
from autograder.vocabulary.text import VERDICT_WORDS, visible

Visibility = Literal["visible", "after_due_date", "after_published", "hidden"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
MAX_TEXT = 20_000  # characters of one test's output
FOLDER_NAME = re.compile(r"submission_(\d+)")
MAX_DEPTH = 50
MAX_SUBMITTERS = 50
MAX_LENGTH = 300


def results(report: Report, notes: Sequence[str] = (), hidden_cases: Visibility = "visible") -> dict[str, Any]:
    """What Gradescope reads as results.json.

    notes          what is said above the tests; then comes why the final grade is another than their sum
    hidden_cases   visible: one test an item, and students see their points at once. Anything else: the public cases of
                   an item are one visible test and its hidden cases another, shown when this says; Gradescope shows no
                   total as long as a test is hidden
    raises         GraderFault for a report that is not graded: no file is better than one that says 0
    """
    if report.points is None:
        raise GraderFault(f"{visible(report.student, 80)} is not graded: {visible(why_not_graded(report), 300)}")
    reasons = report.reasons if isinstance(report, FinalReport) else ()
    return {
        "score": report.points,
        "execution_time": round(sum(item.seconds for item in report.items), 2),
        "output": "\n".join(visible(note) for note in (*notes, *reasons)),
        "output_format": "text",
        "test_output_format": "md",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [test for at, item in enumerate(report.items, 1) for test in _tests(item, at, hidden_cases)],
        "leaderboard": [],
        "extra_data": {"student": report.student, "assignment": report.assignment, "fixtures": report.fixtures},
    }


def _tests(item: ItemResult, at: int, hidden_cases: Visibility) -> list[dict[str, Any]]:
    public = [case for case in item.cases if case.visibility == "public"]
    hidden = [case for case in item.cases if case.visibility == "hidden"]
    if hidden_cases == "visible" or not public or not hidden:
        only: Visibility = "visible" if public or not hidden or hidden_cases == "visible" else hidden_cases
        output = item_markdown(item) if only == "visible" or item.verdict == "passed" else _said(hidden)
        return [_test(item, str(at), "", item.points or 0.0, item.max_points, output, only)]
    most = round(item.max_points * len(public) / len(item.cases), 2)
    passed = sum(case.verdict == "passed" for case in public)
    earned = min(round(item.max_points * passed / len(item.cases), 2), item.points or 0.0)
    shown = item_markdown(item) if passed < len(public) else ""  # the message is of the first case that failed
    rest, rest_most = round((item.points or 0.0) - earned, 2), round(item.max_points - most, 2)
    return [
        _test(item, f"{at}.1", ", public cases", min(earned, most), most, shown, "visible"),
        _test(item, f"{at}.2", ", hidden cases", min(rest, rest_most), rest_most, _said(hidden), hidden_cases),
    ]


def _test(
    item: ItemResult, at: str, which: str, score: float, most: float, output: str, visibility: Visibility
) -> dict[str, Any]:
    return {
        "number": at,
        "name": f"{item.item}: {item.title}{which}",
        "score": score,
        "max_score": most,
        "status": "passed" if score == most else "failed",
        "output": output[:MAX_TEXT],
        "visibility": visibility,
        "tags": [item.function],
        "extra_data": {"verdict": item.verdict, "mistakes": list(item.mistakes)} if visibility == "visible" else {},
    }


def _said(cases: Sequence[CaseResult]) -> str:
    """What was wrong with these cases: each message once, in the order of the cases."""
    failed = [case for case in cases if case.verdict != "passed"]
    messages = dict.fromkeys(case.message or VERDICT_WORDS[case.verdict] for case in failed)
    return "\n".join(fenced(message) for message in messages)


# The download of a class


def hand_ins(folder: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[HandIn]:
    """What was handed in where these are the folders of an export; nothing where they are not."""
    folders = [entry for entry in entries if is_folder(entry) and FOLDER_NAME.fullmatch(entry.name)]
    if not folders or not any(entry.name == METADATA and entry.is_file(follow_symlinks=False) for entry in entries):
        return []
    described = read_metadata(folder / METADATA)
    found = []
    for entry in folders:
        about = described.get(entry.name)
        owners = tuple(_owner(*submitter, entry.name) for submitter in about.submitters) if about else ()
        submitted = parse_time(about.created_at) if about else None
        owners = tuple(owner for owner in owners if owner) or ((entry.name,),)
        found.append(HandIn(owners, Path(entry.path), shown_name(entry.name), submitted=submitted))
    return found


def _owner(name: str, sid: str, email: str, folder: str) -> tuple[str, ...]:
    """What a submitter is called; a name alone, which anybody may choose, makes no two submissions one student's."""
    names = [one for one in (sid, email, name) if one]
    return (f"{name}_{sid or email or folder}", *names) if name else tuple(names)


@dataclass
class Described:
    """One submission: its submitters as (name, sid, email), and when it was made."""

    created_at: str = ""
    people: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def submitters(self) -> list[tuple[str, str, str]]:
        """In the order of the file."""
        return [(one.get(":name", ""), one.get(":sid", ""), one.get(":email", "")) for one in self.people.values()]


def read_metadata(path: Path) -> dict[str, Described]:
    """Folder → what the file says of it. Raises UsageError where the file is not Gradescope's, or PyYAML is missing."""
    try:
        import yaml
    except ModuleNotFoundError:
        advice = "python -m pip install pyyaml"
        raise UsageError(f"Reading what Gradescope exports needs the package pyyaml: {advice}.") from None
    found: dict[str, Described] = {}
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_METADATA + 1)
        if len(data) > MAX_METADATA:
            raise UsageError(f"{path} is larger than {MAX_METADATA // 2**20} MiB: is it Gradescope's?")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for place, value in _scalars(yaml.parse(data, Loader=loader)):
            _note(found, place, value)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path} is not what Gradescope writes ({first}): download the export again.") from None
    return found


def _note(found: dict[str, Described], place: tuple[str | int, ...], value: str) -> None:
    match place:
        case (str() as folder, ":created_at"):
            found.setdefault(folder, Described()).created_at = value
        case (str() as folder, ":submitters", int() as number, ":name" | ":sid" | ":email" as key) if (
            number < MAX_SUBMITTERS
        ):
            person = found.setdefault(folder, Described()).people.setdefault(number, {})
            person[key] = " ".join(value.split())[:MAX_LENGTH]
        case _:
            pass


def _scalars(events: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every scalar with its place: keys of mappings, numbers in sequences. Raises ValueError where it is too deep."""
    place: list[str | int] = []
    waiting: list[bool] = []  # of each open collection: is the next scalar a key
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            _advance(place, waiting, "")
            place.append(-1 if kind == "SequenceStartEvent" else "")
            waiting.append(kind == "MappingStartEvent")
            if len(place) > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            place.pop()
            waiting.pop()
        elif kind in ("ScalarEvent", "AliasEvent"):
            value = event.value if kind == "ScalarEvent" else ""
            if _advance(place, waiting, value) and kind == "ScalarEvent":
                yield tuple(place), value


def _advance(place: list[str | int], waiting: list[bool], value: str) -> bool:
    """Move on by one node; whether it is a value, not the key of a mapping."""
    if not place:
        return False
    if isinstance(place[-1], int):
        place[-1] += 1
        return True
    if waiting[-1]:
        place[-1] = value
    waiting[-1] = not waiting[-1]
    return waiting[-1]

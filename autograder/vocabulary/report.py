"""The report of one submission: what `reports/<student>.json` holds, and its reading and writing."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from autograder import __version__

SCHEMA = 1
MOST = 1e12  # points, or seconds
# Control, format (bidi overrides, zero-width characters), lone surrogates, line and paragraph separators:
# what can reorder a line, move a cursor, or stand where nobody sees it.
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_text = json.encoder.encode_basestring
NOT_REACHED = "Not reached"  # how the message of an item begins that `Report.cause` explains

Verdict = Literal[
    "passed", "failed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run", "not_graded"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Visibility = Literal["public", "hidden"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)


@dataclass(frozen=True)
class CaseResult:
    """The verdict on one case; `message` is safe to show to the student."""

    case: str
    visibility: Visibility
    verdict: Verdict
    message: str


@dataclass(frozen=True)
class ItemResult:
    """The verdict on one item; `points` is None exactly where the verdict is `not_graded`.

    counterexample   a call to paste that goes wrong, with what it returns and should return; "" where none was found
    """

    item: str
    function: str
    title: str
    points: float | None
    max_points: float
    verdict: Verdict
    mistakes: tuple[str, ...]
    message: str
    hint: str
    seconds: float
    cases: tuple[CaseResult, ...]
    counterexample: str = ""

    @property
    def fails_unseen(self) -> bool:
        """Whether every public case passes and a hidden one does not: running the public ones again shows nothing."""
        public = [case.verdict for case in self.cases if case.visibility == "public"]
        return self.verdict not in ("passed", "not_graded") and bool(public) and set(public) == {"passed"}


@dataclass(frozen=True)
class SubmissionInfo:
    """Where a submission was found and the SHA-256 of what was read."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Report:
    """All that is known of one graded submission.

    kit        the version of the kit that graded it; "" where that was before reports said it
    cause      what kept items from being reached, told once: a file that cannot be imported, a cell that cannot be read
    identity   the student's id as the download's layout says it: `canvas:1001`, or without a platform where it means
               something elsewhere too; "" where a layout says none
    """

    student: str
    assignment: str
    submission: SubmissionInfo
    fixtures: str
    isolation: tuple[str, ...]
    items: tuple[ItemResult, ...]
    kit: str = __version__
    cause: str = ""
    identity: str = ""

    @property
    def status(self) -> Literal["graded", "not_graded"]:
        """`not_graded` as soon as one item is: a sum with a hole in it is not a grade."""
        return "not_graded" if any(item.verdict == "not_graded" for item in self.items) else "graded"

    @property
    def fault(self) -> str:
        """Why the grader failed on it; "" where it did not."""
        return next((item.message for item in self.items if item.points is None), "")

    @property
    def points(self) -> float | None:
        """The sum over items; None where the grader failed on one of them."""
        if self.status == "not_graded":
            return None
        return round(sum(item.points or 0.0 for item in self.items), 2)

    @property
    def max_points(self) -> float:
        """The sum of what the items are worth."""
        return round(sum(item.max_points for item in self.items), 2)


def to_json(report: Report) -> dict[str, Any]:
    """The report as `reports/<student>.json` spells it."""
    items = [_item_to_json(item) for item in report.items]
    return {
        "schema": SCHEMA,
        "student": report.student,
        **({"identity": report.identity} if report.identity else {}),
        "assignment": report.assignment,
        "submission": asdict(report.submission),
        "fixtures": report.fixtures,
        "kit": report.kit,
        "points": report.points,
        "max_points": report.max_points,
        "status": report.status,
        "isolation": list(report.isolation),
        "cause": report.cause,
        "items": items,
    }


def _item_to_json(item: ItemResult) -> dict[str, Any]:
    """The item's entry, without a counterexample where there is none; as `asdict` makes it, in a tenth of its time."""
    entry = {**vars(item), "cases": tuple(dict(vars(case)) for case in item.cases)}
    if not item.counterexample:
        del entry["counterexample"]
    return entry


def from_json(data: Mapping[str, Any]) -> Report:
    """The report that `to_json` wrote; raises KeyError, TypeError or ValueError on anything else."""
    if not isinstance(data, dict) or data["schema"] != SCHEMA:
        raise ValueError(f"this is no report of schema {SCHEMA}")
    submission = SubmissionInfo(**data["submission"])
    report = Report(
        student=data["student"],
        assignment=data["assignment"],
        submission=submission,
        fixtures=data["fixtures"],
        isolation=tuple(_listed(data["isolation"])),
        items=tuple(_item_from_json(item) for item in _listed(data["items"])),
        kit=data.get("kit", ""),
        cause=data.get("cause", ""),
        identity=data.get("identity", ""),
    )
    names = (report.student, report.assignment, report.fixtures, report.kit, report.cause, report.identity)
    _refuse_unless_text(*names, submission.path, submission.sha256, *report.isolation)
    return report


def _listed(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("something that should be a list")
    return value


def _refuse_unless_text(*values: object) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("something that should be text")


def _item_from_json(item: Mapping[str, Any]) -> ItemResult:
    cases = tuple(CaseResult(**case) for case in _listed(item["cases"]))
    result = ItemResult(**{**item, "mistakes": tuple(_listed(item["mistakes"])), "cases": cases})
    _refuse_unless_text(result.item, result.function, result.title, result.message, result.hint, *result.mistakes)
    _refuse_strange(cases, result.item)
    numbers = (result.max_points, result.seconds, *([] if result.points is None else [result.points]))
    if result.verdict not in VERDICTS:
        raise ValueError(f"{result.item} has an unknown verdict")
    if (result.points is None) != (result.verdict == "not_graded"):
        raise ValueError(f"the points of {result.item} do not fit its verdict")
    if not isinstance(result.counterexample, str):
        raise TypeError(f"the counterexample of {result.item} is no text")
    if not all(type(number) in (int, float) and math.isfinite(number) and 0 <= number < MOST for number in numbers):
        raise TypeError(f"{result.item} has points or seconds that are no numbers")
    return result


def _refuse_strange(cases: Sequence[CaseResult], item: str) -> None:
    for case in cases:  # of which a class has a hundred thousand
        if not isinstance(case.case, str) or not isinstance(case.message, str):
            raise TypeError(f"{item} has a case without a name or a message")
        if case.visibility not in VISIBILITIES:
            raise ValueError(f"{item} has a case that is neither public nor hidden")
        if case.verdict not in VERDICTS:
            raise ValueError(f"{item} has a case of an unknown verdict")


def to_bytes(report: Report) -> bytes:
    """What the file of a report holds. What acts without being seen, or is no character, becomes JSON's escape."""
    return json_bytes(to_json(report))


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """`data` as such a file holds it: readable letters stay, and what acts without being seen is JSON's escape."""
    return plain_json(indented(data)).encode() + b"\n"


def indented(value: Any, margin: str = "\n") -> str:
    """What `json.dumps(value, indent=1, ensure_ascii=False)` says of plain data whose keys are text.

    It takes a tenth of the time, since the C code of `json` knows no margins.

    margin   the line break and spaces before whatever stands beside it
    """
    inner = margin + " "
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict) and value:
        entries = [f"{_text(key)}: {indented(one, inner)}" for key, one in value.items()]
        return f"{{{inner}{f',{inner}'.join(entries)}{margin}}}"
    if isinstance(value, list | tuple) and value:
        return f"[{inner}{f',{inner}'.join([indented(one, inner) for one in value])}{margin}]"
    return _ENCODER.encode(value)


def plain_json(text: str) -> str:
    """JSON with each character in it that acts without being seen as JSON's own escape: what it says is the same.

    Outside strings JSON holds none of them but line breaks and spaces, and `json` has escaped those inside.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(_json_escape(one) if one != "\n" and unicodedata.category(one) in INVISIBLE else one for one in text)


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def from_bytes(data: bytes) -> Report | None:
    """The report that a file holds; None where it holds something else."""
    try:
        return from_json(json.loads(data.decode()))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def read_report(path: Path) -> Report | None:
    """The report at `path`; None where there is none or it is not one."""
    try:
        return from_bytes(path.read_bytes())
    except OSError:
        return None

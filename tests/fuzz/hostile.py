"""What comes from outside, spoilt: each target makes one input and reads it.

    frames          what a worker says
    stored          tensors of fixtures, reports
    handed-in       modules, notebooks, a student's zip
    trees           folders as platforms keep them, whole or a part, as a folder or a zip
    words           answers in a broken notebook beside a module
    platform-files  rosters, overrides, policies, gradebooks, worksheets
    time-stamps     in files and in text

A `KitError` is a refusal with a reason: expected. Anything else that is raised is a finding.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from traceback import extract_tb

import numpy as np
import places
from class_folders import DOWNLOADS, content
from hand_ins import MODULE, notebook, zipped
from mutations import spoilt_bytes, spoilt_text, spoilt_value

from autograder.gradebook.decisions import decisions_of
from autograder.gradebook.final_grades import Adjustment
from autograder.gradebook.grades_folder import read_grades
from autograder.gradebook.roster import read_roster
from autograder.gradebook.rules import read_policy
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import decode
from autograder.platforms.gradebooks import canvas_csv, column_csv, moodle_csv, plain_csv
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.sandbox.calls import observation_in, raised_from_header
from autograder.sandbox.worker import frames
from autograder.submissions.finding import find
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.files import read_table, write_atomically
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo, from_bytes, to_bytes, to_json
from autograder.vocabulary.times import moment_or_none

KIT = Path(__file__).resolve().parents[2]
OBSERVED = {
    "op": "observed",
    "returned": {
        "loss": {"kind": "tensor", "dtype": "float32", "shape": [], "requires_grad": True, "sent": True},
        "deltas": {"kind": "tensor", "dtype": "int64", "shape": [2, 3], "requires_grad": False, "sent": True},
        "gradient": {"kind": "none"},
        "list": {"kind": "other", "type": "list"},
    },
    "facts": {"times sampled": 3, "error": {"types": ["ValueError"], "message": "x"}},
}
RAISED = {"op": "raised", "types": ["ValueError", "Exception"], "message": "no", "line": 12, "code": "x = 1"}
TENSORS = np.array(1.5, np.float32).tobytes() + np.arange(6).tobytes()
NOTEBOOK = json.loads(notebook(
    {"cell_type": "markdown", "metadata": {"nbgrader": {"grade": True, "grade_id": "a"}}, "source": ["# words"]},
    "def compute_deltas(x): ...",
))  # fmt: skip
IPYNB = json.dumps(NOTEBOOK)
POLICY = """[late]
per_day = 10
free_days = 2
deadline = 2027-03-12T23:59:00
[late.extensions]
ada = 3
[excused]
bela = "ill"
"""
HW5 = "HW5 GRPO (123456)"
BLACKBOARD = 'Last Name,First Name,Username,"HW5 [Total Pts: 100 Score] |123456"\nA,Ada,ada,\nB,Bela,bela,3\n'
SPACE = "OrgDefinedId,Username,HW5 Points Grade <Numeric MaxPoints:100>,End-of-Line Indicator\n#1,#ada,,#\n#2,#b,3,#\n"
CODE = "def compute_deltas(x):\n    return x[0:10]\n"
TIMES = (
    *("2027-03-12 23:59:00.000000 UTC", "2027-03-12T22:59:00+01:00", "2027-03-12 23:59:00 Europe/Berlin"),
    *("2027-03-12", "9999-12-31 23:59:59 -0500", "0001-01-01T00:00:00+05:00", "2027-03-12 23:59"),
)
# Classes as platforms keep them: where a file lies, and what it holds.
TREES = [{**{name: content(name) for name in one.files}, **one.texts} for one in DOWNLOADS.values()]
NAMES = sorted({part for tree in TREES for name in tree for part in name.split("/")})

Target = Callable[[random.Random, Path], object]


@functools.cache
def assignment() -> Assignment:
    return find_assignment(KIT, MODULE)


def few_lines(name: str) -> str:
    return "".join((places.DOWNLOADS / f"{name}.csv").read_text(encoding="utf-8").splitlines(keepends=True)[:6])


@functools.cache
def stored() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((assignment().folder / "public").glob("*.safetensors"))[:4])


def report(student: str = "ada") -> Report:
    case = CaseResult("one", "public", "passed", "")
    items = (ItemResult("deltas-centered", "compute_deltas", "title", 3.0, 3.0, "passed", (), "", "", 0.1, (case,)),)
    return Report(student, MODULE, SubmissionInfo(student, "0" * 64), "1" * 64, ("process",), items)


def read(candidate: Candidate, untouched: str = "") -> Submission:
    """Read within the limits: one thing, in words that can be printed, and no fault of the reader's own."""
    submission = read_limited(candidate, MODULE, untouched)
    assert "the reader ended with" not in submission.fault, submission.fault
    assert [bool(submission.source), bool(submission.problem), bool(submission.fault)].count(True) == 1
    assert all(word.isprintable() for word in (submission.path, submission.problem, *submission.notes))
    assert submission.problem == "" or (len(submission.problem) < 1000 and submission.problem.endswith("."))
    submission.source.encode()  # text that a worker can be sent
    return submission


def a_frame(source: random.Random, _: Path) -> str:
    header, blob = source.choice(((OBSERVED, TENSORS), (RAISED, b"")))
    encoded = json.dumps(header).encode()
    match source.randrange(4):
        case 0:
            data = spoilt_bytes(source, framed(encoded, blob))
        case 1:
            data = framed(spoilt_bytes(source, encoded), blob)
        case 2:
            data = framed(encoded, spoilt_bytes(source, blob))
        case _:
            data = framed(json.dumps(spoilt_value(source, header)).encode(), blob)
    try:
        frame = frames.read(io.BytesIO(data)) or frames.Frame(b"{}", b"")
        header = frame.header
    except frames.FrameError:
        return "no frame"
    for reading in (lambda: observation_in(frame), lambda: raised_from_header(header)):
        with contextlib.suppress(ValueError):
            reading()
            return "read"
    return "unreadable"


def framed(header: bytes, blob: bytes) -> bytes:
    return frames.PREFIX.pack(frames.MAGIC, len(header), len(blob)) + header + blob


def a_stored_file(source: random.Random, folder: Path) -> object:
    if source.random() < 0.5:
        return decode(spoilt_bytes(source, source.choice(stored())), folder / "cases.safetensors")
    data = to_bytes(report())
    if source.random() < 0.5:
        return from_bytes(spoilt_bytes(source, data))
    return from_bytes(json.dumps(spoilt_value(source, json.loads(data))).encode("utf-8", "replace"))


def a_handed_in_file(source: random.Random, folder: Path) -> object:
    work: Mapping[str, Callable[[], bytes]] = {
        f"{MODULE}.py": lambda: spoilt_text(source, CODE).encode("utf-8", "replace"),
        f"{MODULE}.ipynb": lambda: spoilt_text(source, IPYNB).encode("utf-8", "replace"),
        f"{MODULE}-1.ipynb": lambda: json.dumps(spoilt_value(source, NOTEBOOK)).encode(),
        "work.zip": lambda: spoilt_bytes(source, zipped({f"{MODULE}.py": "x = 1", f"a/{MODULE}.ipynb": IPYNB})),
    }
    for name in source.sample(sorted(work), source.randrange(1, 3)):
        place = folder / "submissions" / source.choice(("ada", "ada/late"))
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(work[name]())
    return [read(candidate) for candidate in find([folder / "submissions"], MODULE)]


def odd_name(source: random.Random) -> str:
    name = source.choice(NAMES)
    return name if source.random() < 0.3 else spoilt_text(source, name).replace("\x00", "")[:200]


def a_platform_file(source: random.Random, folder: Path) -> object:
    path = folder / "file.csv"
    given: Mapping[str, tuple[str, Callable[[], object]]] = {
        "roster": ("id,name,email\n17,Ada,ada@x.org\n18,Bela,bela@x.org\n", lambda: read_roster(path)),
        "overrides": (
            "student,item,points,comment\nada,deltas-centered,2,kind\n",
            lambda: decisions_of(folder, assignment(), [path]).merged(),
        ),
        "policy": (POLICY, lambda: read_policy(path, assignment())),
        "canvas": (few_lines("canvas-gradebook"), lambda: canvas_csv([report()], read_table(path), HW5, scale=True)),
        "moodle": (few_lines("moodle-worksheet"), lambda: moodle_csv([report()], read_table(path))),
        "blackboard": (BLACKBOARD, lambda: column_csv("Blackboard", [report()], read_table(path), "HW5", scale=True)),
        "brightspace": (SPACE, lambda: column_csv("Brightspace", [report()], read_table(path), "HW5", scale=True)),
    }
    text, reading = given[source.choice(sorted(given))]
    path.write_text(spoilt_text(source, text), encoding="utf-8", errors="replace", newline="")
    return reading()


def a_tree(source: random.Random, folder: Path) -> object:
    """A platform's folders: names or texts in them spoilt, whole or a part, as a folder or as a zip."""
    files = dict(source.choice(TREES))
    for path, text in list(files.items()):
        if source.random() < 0.3:
            files[path] = spoilt_text(source, text)
        if source.random() < 0.3:
            parts = path.split("/")
            parts[source.randrange(len(parts))] = odd_name(source).replace("/", "_").strip(".") or "x"
            files["/".join(parts)] = files.pop(path)
    if source.random() < 0.5:
        top = folder / "class.zip"
        packed = zipped({printable(name): printable(text) for name, text in files.items()})
        top.write_bytes(spoilt_bytes(source, packed) if source.random() < 0.3 else packed)
    else:
        for name, text in files.items():
            path = folder / "course" / printable(name)
            with contextlib.suppress(OSError):  # a file where a folder is to be, or a name that is too long
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", errors="replace")
        inner = [path for path in (folder / "course").rglob("*") if path.is_dir() and ".git" not in path.parts]
        top = source.choice([folder / "course", folder / "course", *inner])
    with gathered([top], MODULE, class_zip=source.random() < 0.9) as found:
        return [read(candidate) for candidate in found.candidates]


def printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def a_time_stamp(source: random.Random, folder: Path) -> object:
    text = source.choice(TIMES)
    text = text if source.random() < 0.2 else spoilt_text(source, text)
    found = moment_or_none(text)
    if found is not None:
        found.astimezone(UTC).timestamp()
    path = folder / "times.csv"
    path.write_text(f"student,submitted\nada,{text}\n", encoding="utf-8", errors="replace")
    return [moment.astimezone(UTC) for moment in read_times(path, assignment(), [Candidate("ada", path, "")]).values()]


def a_report(source: random.Random, folder: Path) -> object:
    late = asdict(Adjustment("late", "", 4.0, 3.0, "late"))
    whole = to_json(report()) | {"final": 3.0, "final_max": 4.0, "adjustments": [late]}
    write_atomically(folder / "reports" / "ada.json", json.dumps(spoilt_value(source, whole)), lasting=False)
    return plain_csv(read_grades(folder))


TARGETS: dict[str, Target] = {
    "frames": a_frame,
    "stored": a_stored_file,
    "handed-in": a_handed_in_file,
    "platform-files": a_platform_file,
    "trees": a_tree,
    "time-stamps": a_time_stamp,
    "reports": a_report,
}


def attempt(target: str, number: int) -> str:
    """What became of one try, always the same for the same number: "read", "refused", or what was raised."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        TARGETS[target](random.Random(f"{target} {number}"), folder)
        return "read"
    except KitError:
        return "refused"
    except Exception as error:
        trace = [at for at in extract_tb(error.__traceback__) if "autograder/" in at.filename]
        place = f"at {Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else ""
        return f"{type(error).__name__}: {str(error)[:200]} {place}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)

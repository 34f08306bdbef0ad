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
from datetime import UTC
from pathlib import Path

import numpy as np
from hand_ins import MODULE, notebook, zipped
from mutations import spoilt_bytes, spoilt_text, spoilt_value

from autograder.gradebook.decisions import decisions_of
from autograder.gradebook.roster import read_roster
from autograder.gradebook.rules import read_policy
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import decode
from autograder.platforms.gradebooks import canvas_csv, column_csv, moodle_csv
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.sandbox.calls import observation_in, raised_from_header
from autograder.sandbox.worker import frames
from autograder.submissions.finding import find
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.files import read_table
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo, from_bytes, to_bytes
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
POLICY = """[late]
per_day = 10
free_days = 2
deadline = 2027-03-12T23:59:00
[late.extensions]
ada = 3
[excused]
bela = "ill"
"""
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Policy gradient (123)\n"
    '    Points Possible,,,,,100\n"Ada, A",17,x1,ada,1,\n"Bela, B",18,x2,bela,1,\n'
)
MOODLE = 'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade"\nParticipant 17,Ada,ada@x.org,,,100.00\n'
BLACKBOARD = 'Last Name,First Name,Username,"HW5 [Total Pts: 100 Score] |123456"\nA,Ada,ada,\nB,Bela,bela,3\n'
BRIGHTSPACE = (
    "OrgDefinedId,Username,Last Name,First Name,"
    '"HW5 Points Grade <Numeric MaxPoints:100 Weight:10>",End-of-Line Indicator\n'
    "#17,#ada,A,Ada,,#\n#18,#bela,B,Bela,3,#\n"
)
CODE = "def compute_deltas(x):\n    return x[0:10]\n"
TIMES = (
    *("2027-03-12 23:59:00.000000 UTC", "2027-03-12T22:59:00+01:00", "2027-03-12 23:59:00 Europe/Berlin"),
    *("2027-03-12", "9999-12-31 23:59:59 -0500", "0001-01-01T00:00:00+05:00", "2027-03-12 23:59"),
)
NAMES = (
    *("ada_17_23_policy_gradient.py", "ada_LATE_17_23_policy_gradient-1.py", "Ada A_17_assignsubmission_file_"),
    *("submission_17", "policy_gradient.py", "ada", "timestamp.txt", "submission_metadata.yml"),
    *("HW5_ada_attempt_2027-03-01-22-10-11_policy_gradient.py", "HW5_ada_attempt_2027-03-01-22-10-11.txt"),
    *("17-23 - Ada Lovelace - Mar 2, 2027 1128 PM", "17-23 - Ada - Mar 2, 2027 1128 PM - policy_gradient.py"),
    *("anon_x3f_23_policy_gradient.py", "policy-gradient-ada", "classroom50-ada", "Policy_Gradient (1).ipynb"),
)
IPYNB = json.dumps(NOTEBOOK)
# Folders as platforms keep them: where a file lies, and what it holds.
TREES: tuple[Mapping[str, str], ...] = (
    {
        "HW5_ada_attempt_2027-03-01-22-10-11.txt": "Name: Ada Lovelace (ada)\nAssignment: HW5\n",
        "HW5_ada_attempt_2027-03-01-22-10-11_policy_gradient.py": "x = 1",
        "HW5_ada_attempt_2027-03-02-22-10-11_policy_gradient.ipynb": IPYNB,
    },
    {
        "17-23 - Ada Lovelace - Mar 2, 2027 1128 PM/policy_gradient.py": "x = 1",
        "17-24 - Bela - Mar 2, 2027 1128 PM/work.zip": "PK",
        "index.html": "<p>",
    },
    {"ada_17_23_policy_gradient.py": "x = 1", "bela_LATE_18_24_policy_gradient-1.py": "x = 2"},
    {"Ada A_17_assignsubmission_file_/policy_gradient.py": "x = 1", "Bela_18_assignsubmission_file_/a.py": "x = 2"},
    {
        "submission_metadata.yml": "submission_17:\n  :submitters:\n  - :name: Ada\n    :sid: x\n",
        "submission_17/policy_gradient.py": "x = 1",
    },
    {
        "submitted/ada/policy_gradient/policy_gradient.ipynb": IPYNB,
        "submitted/ada/policy_gradient/timestamp.txt": "2027-03-12 23:59:00 UTC",
    },
    {"policy-gradient-ada/.git/HEAD": "ref: refs/heads/main", "policy-gradient-ada/policy_gradient.py": "x = 1"},
)

Target = Callable[[random.Random, Path], object]


@functools.cache
def assignment() -> Assignment:
    return find_assignment(KIT, MODULE)


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
    text = json.dumps(NOTEBOOK)
    work: Mapping[str, Callable[[], bytes]] = {
        f"{MODULE}.py": lambda: spoilt_text(source, "def compute_deltas(x):\n    return x[0:10]\n").encode(
            "utf-8", "replace"
        ),
        f"{MODULE}.ipynb": lambda: spoilt_text(source, text).encode("utf-8", "replace"),
        f"{MODULE}-1.ipynb": lambda: json.dumps(spoilt_value(source, NOTEBOOK)).encode(),
        "work.zip": lambda: spoilt_bytes(
            source, zipped({f"{MODULE}.py": b"x = 1", f"a/{MODULE}.ipynb": text.encode()})
        ),
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
        "canvas": (CANVAS, lambda: canvas_csv([report()], read_table(path), "Policy gradient (123)", scale=True)),
        "moodle": (MOODLE, lambda: moodle_csv([report()], read_table(path))),
        "blackboard": (BLACKBOARD, lambda: column_csv("Blackboard", [report()], read_table(path), "HW5", scale=True)),
        "brightspace": (
            BRIGHTSPACE,
            lambda: column_csv("Brightspace", [report()], read_table(path), "HW5", scale=True),
        ),
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


TARGETS: dict[str, Target] = {
    "frames": a_frame,
    "stored": a_stored_file,
    "handed-in": a_handed_in_file,
    "platform-files": a_platform_file,
    "trees": a_tree,
    "time-stamps": a_time_stamp,
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
        return f"{type(error).__name__}: {str(error)[:200]} {place_of(error)}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place_of(error: BaseException) -> str:
    """The last line of the kit's own that it came from."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "autograder" in name and "/fuzz/" not in name:
            place = f"at {Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place

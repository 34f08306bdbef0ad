"""A slice of the fuzzing, always the same: `python tests/fuzz --minutes N` goes on from where it ends.

`test_ten_minutes.py` does so in the long stage, from another place each day.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import MODULE, TARGETS, assignment, attempt, zipped
from lengths import in_short
from mutations import spoilt_bytes, spoilt_text, spoilt_value

from autograder.gradebook.rules import read_policy
from autograder.platforms.layouts import gathered
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import CAPS, Submission
from autograder.vocabulary.errors import UsageError

EXPECTED = {"read", "refused"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first", in_short(range(0, 400, 20)))
def test_what_is_spoilt_is_read_or_refused_with_a_reason(target: str, first: int) -> None:
    became = {number: attempt(target, number) for number in range(first, first + 20)}
    assert {number: what for number, what in became.items() if what not in EXPECTED} == {}


def test_each_target_meets_both_what_is_read_and_what_is_refused() -> None:
    """Or it would spoil too little to matter, or so much that the first check stops it."""
    for target in {*TARGETS} - {"frames", "handed-in", "words"}:  # of these nothing is refused: it is a verdict
        assert {attempt(target, number) for number in range(40)} >= ({"read"} if target == "downloads" else EXPECTED)


def test_a_finding_is_told_with_its_place_and_is_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "frames", lambda source, folder: 1 // source.randrange(1))
    assert attempt("frames", 3) == attempt("frames", 3) == "ZeroDivisionError: integer division or modulo by zero "


# What is handed in, in numbers

CLASS = assignment().folder / "submissions"
WORK = (CLASS / "dana" / f"{MODULE}.py").read_text(encoding="utf-8")
NOTEBOOK = json.loads((CLASS / "mina" / f"{MODULE}.ipynb").read_text(encoding="utf-8"))
ZIP = (CLASS / "noor.zip").read_bytes()


def spoilt_notebook(source: random.Random) -> bytes:
    if source.random() < 0.3:
        return spoilt_bytes(source, json.dumps(NOTEBOOK).encode())
    return json.dumps(spoilt_value(source, spoilt_value(source, NOTEBOOK))).encode("utf-8", "replace")


def spoilt_zip(source: random.Random) -> bytes:
    if source.random() < 0.4:
        return spoilt_bytes(source, ZIP)
    return zipped({f"{MODULE}.py": spoilt_module(source), f"a/{MODULE}.ipynb": spoilt_notebook(source)})


def spoilt_module(source: random.Random) -> bytes:
    return spoilt_bytes(source, spoilt_text(source, WORK).encode("utf-8", "replace"))


DAMAGED: dict[str, tuple[int, str, Callable[[random.Random], bytes]]] = {
    "module": (800, f"student/{MODULE}.py", spoilt_module),
    "notebook": (700, f"student/{MODULE}.ipynb", spoilt_notebook),
    "zip": (700, "student.zip", spoilt_zip),
}


@pytest.mark.parametrize("kind", in_short(DAMAGED))
def test_a_damaged_submission_is_read_or_refused_in_words(kind: str, tmp_path: Path) -> None:
    (count, name, make), source, found = DAMAGED[kind], random.Random(f"damaged {kind}"), Counter[str]()
    path = tmp_path / "class" / name
    path.parent.mkdir(parents=True)
    for _ in range(count):
        path.write_bytes(make(source))
        (candidate,) = find([tmp_path / "class"], MODULE)
        found[told(read(candidate, MODULE, assignment().untouched_source()))] += 1
        assert {one for one in tmp_path.rglob("*") if one.is_file()} == {path}  # nothing is unpacked to disk
    assert found.total() == count
    assert min(found["source"], found["problem"]) > count // 20, found  # or little was tried


def told(submission: Submission) -> str:
    """What it was read as: one thing, within its caps, and in words that can be printed."""
    assert [bool(submission.source), bool(submission.problem), bool(submission.fault)].count(True) == 1
    assert submission.fault == "" or submission.fault.endswith("keep the one that counts.")
    assert submission.student == "student"
    assert len(submission.source) <= CAPS[".py"]
    assert all(word.isprintable() for word in (submission.path, submission.problem, *submission.notes))
    assert submission.problem == "" or (len(submission.problem) < 1000 and submission.problem.endswith("."))
    submission.source.encode()  # text that a worker can be sent
    return "source" if submission.source else "problem" if submission.problem else "fault"


def test_at_least_two_thousand_damaged_submissions_are_tried() -> None:
    assert sum(count for count, _, _ in DAMAGED.values()) >= 2_000


# What was found


def test_a_damaged_entry_of_a_class_zip_is_refused(tmp_path: Path) -> None:
    whole = zipped({f"ada_17_23_{MODULE}.py": b"x = 1\n" * 50})
    start = whole.index(b".py") + 3
    (tmp_path / "class.zip").write_bytes(whole[:start] + b"\xff" * 8 + whole[start + 8 :])
    with pytest.raises(UsageError, match="is damaged at"), gathered([tmp_path / "class.zip"], MODULE, class_zip=True):
        pass


def test_a_number_of_five_thousand_digits_in_a_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"[late]\nper_day = {'9' * 5000}\n")
    with pytest.raises(UsageError, match="this is not TOML: Exceeds the limit"):
        read_policy(path, assignment())

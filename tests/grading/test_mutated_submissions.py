"""Submissions that were damaged, by accident or on purpose: they are read or refused in words, and earn nothing new.

Each is made of a real one by `random.Random` with a fixed seed, so every run tries the same.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import random
import stat
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lengths import in_short
from places import KIT

from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.assignments import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import CAPS, MIB, Submission
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
MODULE = ASSIGNMENT.module
CLASS = ASSIGNMENT.folder / "submissions"
UNTOUCHED = ASSIGNMENT.untouched_source()
SOLUTION = solution_source(ASSIGNMENT)
HALF_DONE = (CLASS / "dana" / f"{MODULE}.py").read_text(encoding="utf-8")
NOTEBOOK = json.loads((CLASS / "mina" / f"{MODULE}.ipynb").read_text(encoding="utf-8"))
ZIP = (CLASS / "noor.zip").read_bytes()
MODULES = [text.encode() for text in (UNTOUCHED, SOLUTION, HALF_DONE)]
COUNTS = {"module": 800, "notebook": 700, "zip": 700}
GRADED = 30  # of each of the two that are graded

DEEP = json.loads("[" * 300 + "]" * 300)
ODD: tuple[Any, ...] = (None, True, -1, 2.5, 10**400, "", "\ud800", "\0", "x" * 10**5, [], {}, ["x"] * 3000, [[]], DEEP)
ODD_NAMES = (
    "../../policy_gradient.py",
    "/etc/policy_gradient.py",
    "C:\\policy_gradient.py",
    "a/../../policy_gradient.py",
    "..\\policy_gradient.py",
    "con.py",
    "x" * 4000 + "/policy_gradient.py",
    "\u202eyp.tneidarg_ycilop",
    "policy_gradient.py/",
    "policy_gradient.py/policy_gradient.py",
)


# Mutations of bytes


def with_damage(source: random.Random, data: bytes) -> bytes:
    """The bytes with one to four places changed, cut out, doubled or filled with noise, or cut short."""
    changed = bytearray(data)
    for _ in range(source.randrange(1, 5)):
        place = source.randrange(len(changed) + 1)
        until = place + source.randrange(1, 200)
        match source.randrange(7):
            case 0:
                changed[place : place + 1] = source.randbytes(1)
            case 1 if place < len(changed):
                changed[place] ^= 1 << source.randrange(8)
            case 2:
                del changed[place:until]
            case 3:
                changed[place:place] = changed[place:until]
            case 4:
                changed[place:place] = source.randbytes(source.randrange(1, 64))
            case 5:
                odd = (b"\0", b"\r", b"\xff", b"\xef\xbb\xbf", b"\t", b"'''", b"\\", b"{")
                changed[place:place] = source.choice(odd)
            case _:
                del changed[max(1, place) :]
    return bytes(changed)


def in_another_encoding(source: random.Random, data: bytes) -> bytes:
    text = data.decode() + source.choice(("", "# naïve", "# π", "# 😀"))
    declared = source.choice(("", "utf-8", "latin-1", "utf-7", "rot13", "cp1252", "zip", "no-such"))
    line = f"# -*- coding: {declared} -*-\n" if declared else ""
    encoding = source.choice(("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7"))
    return (line + text).encode(encoding, "replace")


def made_huge(source: random.Random, data: bytes) -> bytes:
    filler = source.choice((b"#", b"\n", b"x = (", b"if 1:\n ", b"-", b"f'{", b"[", b"1+", b"lambda:", b"a.b", b"@"))
    return data + filler * source.choice((500, 20_000, MIB // len(filler) + 1))


def mutated_module(source: random.Random) -> bytes:
    data = source.choice(MODULES)
    match source.randrange(10):
        case 0:
            return in_another_encoding(source, data)
        case 1:
            return made_huge(source, data)
        case 2:
            return with_another_statement(source, data.decode()).encode("utf-8", "replace")
        case _:
            return with_damage(source, data)


# Mutations of structure


def with_an_odd_value(source: random.Random, value: Any) -> Any:
    """The JSON value with something odd put in the place of one of its parts, or of itself."""
    if not isinstance(value, dict | list) or not value or source.random() < 0.1:
        return source.choice(ODD)
    copied: Any = value.copy()
    key = source.choice(list(value) if isinstance(value, dict) else range(len(value)))
    match source.randrange(8):
        case 0:
            del copied[key]
        case 1 if isinstance(copied, list):
            copied[key:key] = [copied[key]] * source.randrange(1, 40)
        case 2 if isinstance(copied, dict):
            copied[source.choice(("cells", "source", "cell_type", "nbformat", "metadata", "\0"))] = source.choice(ODD)
        case _:
            copied[key] = with_an_odd_value(source, value[key])
    return copied


def mutated_notebook(source: random.Random) -> bytes:
    notebook: Any = copy.deepcopy(NOTEBOOK)
    match source.randrange(6):
        case 0:
            return with_damage(source, json.dumps(notebook).encode())
        case 1:
            cell = source.choice(notebook["cells"])
            magic = source.choice(("%%bash\nrm -rf /\n", "!curl x\n", "%run x\n", "%%writefile a\n", "\0", "?x\n"))
            cell["source"] = source.choice((magic + "".join(cell["source"]), [magic, *cell["source"]]))
        case 2:
            notebook["cells"] *= source.choice((2, 50, 300))
        case 3:
            notebook["nbformat"] = source.choice((*ODD, 1, 2, 3, 5))
        case _:
            for _ in range(source.randrange(1, 4)):
                notebook = with_an_odd_value(source, notebook)
    return json.dumps(notebook).encode("utf-8", "replace")


def mutated_zip(source: random.Random) -> bytes:
    if source.random() < 0.4:
        return with_damage(source, ZIP)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for _ in range(source.choice((1, 2, 3, 4))):
            add_member(source, archive)
        for number in range(2500 if source.random() < 0.02 else 0):
            archive.writestr(f"{number}.txt", b"")
    data = buffer.getvalue()
    return with_damage(source, data) if source.random() < 0.3 else data


def add_member(source: random.Random, archive: zipfile.ZipFile) -> None:
    """Put in something like a submission, under a name, of a kind and packed in a way that is usual or is not."""
    names = (f"{MODULE}.py", f"{MODULE}.ipynb", f"{MODULE}/{MODULE}.py", "notes.txt", "inner.zip")
    odd = source.random() < 0.2
    name = source.choice(ODD_NAMES) if odd else source.choice(names)
    member = zipfile.ZipInfo(f"{len(archive.filelist)}/{name}" if name in archive.NameToInfo else name)
    member.compress_type = source.choice((archive.compression,) * 6 + (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    kinds = (stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR)
    member.external_attr = (source.choice((stat.S_IFREG,) * 12 + kinds) | 0o644) << 16
    usual = json.dumps(NOTEBOOK).encode() if name.endswith(".ipynb") else source.choice(MODULES)
    unusual = source.choice((b"", b"/etc/passwd", ZIP, bytes(2 * MIB), mutated_module(source)))
    archive.writestr(member, unusual if source.random() < 0.2 else usual)


def with_another_statement(source: random.Random, text: str) -> str:
    """The module with one or two parts of its syntax tree left out, doubled or exchanged: it parses still."""
    tree = ast.parse(text)
    for _ in range(source.randrange(1, 3)):
        bodies = [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)]
        body = source.choice(bodies)
        place = source.randrange(len(body))
        match source.randrange(4):
            case 0 if len(body) > 1:
                del body[place]
            case 1:
                body.insert(place, copy.deepcopy(source.choice(source.choice(bodies))))
            case 2:
                body[place] = ast.parse(source.choice(("pass", "return None", "x = 1", "raise KeyError"))).body[0]
            case _:
                exchange_constants(source, tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def exchange_constants(source: random.Random, tree: ast.AST) -> None:
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and not isinstance(node.value, str)]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    source.choice(constants).value = source.choice((0, 1, -1, 0.5, None, "rewards", True))
    source.choice(names).id = source.choice(names).id


# Reading


MAKERS: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "module": (f"student/{MODULE}.py", mutated_module),
    "notebook": (f"student/{MODULE}.ipynb", mutated_notebook),
    "zip": ("student.zip", mutated_zip),
}


def read_one(folder: Path) -> Submission:
    (candidate,) = find([folder], MODULE)
    return read(candidate, MODULE, UNTOUCHED)


def kind_of(submission: Submission) -> str:
    """What it was read as; whatever it is, it is one thing, told in words and within its caps."""
    assert submission.fault == "" or submission.fault.endswith("keep the one that counts.")
    assert [bool(submission.source), bool(submission.problem), bool(submission.fault)].count(True) == 1
    assert len(submission.source) <= CAPS[".py"]
    assert len(submission.sha256) == 64
    assert (submission.student, submission.path.partition("/")[0].removesuffix(".zip")) == ("student", "student")
    assert all(word.isprintable() for word in (submission.path, submission.problem, *submission.notes))
    assert len(submission.problem) < 1000
    assert submission.problem == "" or submission.problem.endswith(".")
    submission.source.encode()  # text that a worker can be sent
    return "source" if submission.source else "problem" if submission.problem else "fault"


@pytest.mark.parametrize("kind", in_short(COUNTS))
def test_a_damaged_submission_is_read_or_refused_in_words(kind: str, tmp_path: Path) -> None:
    source = random.Random(f"damaged {kind}")
    name, make = MAKERS[kind]
    path = tmp_path / "class" / name
    path.parent.mkdir(parents=True)
    found: Counter[str] = Counter()
    for _ in range(COUNTS[kind]):
        path.write_bytes(make(source))
        found[kind_of(read_one(tmp_path / "class"))] += 1
        assert {one for one in tmp_path.rglob("*") if one.is_file()} == {path}  # nothing is unpacked to disk
    # Mutations that stopped at the first check would prove little.
    assert min(found["source"], found["problem"]) > COUNTS[kind] // 20, found


def test_two_thousand_files_are_tried() -> None:
    assert sum(COUNTS.values()) >= 2_000


def test_a_link_in_a_zip_shows_no_file_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("SECRET = 1\n")
    member = zipfile.ZipInfo(f"{MODULE}.py")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    (tmp_path / "class").mkdir()
    with zipfile.ZipFile(tmp_path / "class" / "student.zip", "w") as archive:
        archive.writestr(member, str(secret))
    submission = read_one(tmp_path / "class")
    assert submission.problem.endswith("is a symbolic link; hand in the file itself.")
    assert "SECRET" not in submission.source


# Grading


def grade(text: str, sandbox: Sandbox) -> Report:
    items = [item for item in ASSIGNMENT.items if item.function != "run_policy_gradient"]
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    return grader.grade(Submission("student", "student.py", "0" * 64, text), sandbox, items=items)


@pytest.mark.long
@pytest.mark.parametrize("base", [UNTOUCHED, HALF_DONE], ids=["untouched", "half done"])
def test_a_damaged_submission_earns_nothing_that_the_whole_one_does_not(base: str, sandbox: Sandbox) -> None:
    source = random.Random(f"graded {len(base)}")
    whole = {item.item: item.points for item in grade(base, sandbox).items}
    earned = Counter[bool]()
    for _ in range(GRADED):
        report = grade(with_another_statement(source, base), sandbox)
        assert report.status == "graded"
        for item in report.items:
            known, now = whole[item.item], item.points
            assert known is not None
            assert now is not None
            assert 0 <= now <= known, item
            earned[now < known] += 1
    if base is UNTOUCHED:
        assert set(whole.values()) == {0.0}
    else:
        assert min(earned[True], earned[False]) > 10  # some mutations matter, some do not

"""Submissions that were damaged: they earn nothing new, and links in them lead nowhere.

Each is made of a real one by `random.Random` with a fixed seed, so every run tries the same.
"""

from __future__ import annotations

import ast
import copy
import random
import stat
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from places import KIT

from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
MODULE = ASSIGNMENT.module
CLASS = ASSIGNMENT.folder / "submissions"
UNTOUCHED = ASSIGNMENT.untouched_source()
HALF_DONE = (CLASS / "dana" / f"{MODULE}.py").read_text(encoding="utf-8")
GRADED = 30  # of each of the two that are graded


# Mutations of structure


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


def read_one(folder: Path) -> Submission:
    (candidate,) = find([folder], MODULE)
    return read(candidate, MODULE, UNTOUCHED)


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

"""What the tests of classes share: the toy assignment, which is quick to grade."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_kit import toy_assignment, toy_kit

from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit(tmp_path_factory.mktemp("course") / "kit", tmp_path_factory)


@pytest.fixture(scope="session")
def grader(course: Path) -> Grader:
    assignment = toy_assignment(course)
    return Grader.of(assignment, read_fixtures(assignment))

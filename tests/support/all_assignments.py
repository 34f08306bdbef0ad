"""Every assignment of the course, for tests that hold for each; and the generator code of one, for tests of it."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import pytest
from places import KIT

from autograder.authoring.fixtures.regenerate import import_generator
from autograder.authoring.handout.release import handout_files
from autograder.checking.handout import write_handout
from autograder.grading.assignment import find_assignment, find_assignments
from autograder.grading.fixtures import Fixtures, read_fixtures

ASSIGNMENTS = find_assignments(KIT)
each_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)


@functools.cache
def generator_of(name: str) -> dict[str, ModuleType]:
    """`oracle`, `cases` and `mistakes` of the assignment of that name, imported once."""
    return import_generator(find_assignment(KIT, name))


@functools.cache
def fixtures_of(name: str) -> Fixtures:
    """The stored cases of the assignment of that name, read once for all files of tests."""
    return read_fixtures(find_assignment(KIT, name))


@functools.cache
def handout_bytes(name: str) -> dict[str, bytes]:
    """The files of the handout of that assignment, made once for all files of tests."""
    return handout_files(find_assignment(KIT, name))


def handout_of(name: str, target: Path) -> Path:
    """The handout of that assignment in the folder `target`, whole: with the copies that the repository leaves out."""
    write_handout(handout_bytes(name), target)
    return target

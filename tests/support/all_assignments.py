"""Every assignment of the course, for tests that hold for each; and the generator code of one, for tests of it."""

from __future__ import annotations

import functools
from types import ModuleType

import pytest
from places import KIT

from autograder.authoring.fixtures.generator import import_generator
from autograder.grading.assignments import find_assignment, find_assignments

ASSIGNMENTS = find_assignments(KIT)
each_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)


@functools.cache
def generator_of(name: str) -> dict[str, ModuleType]:
    """`oracle`, `cases` and `mistakes` of the assignment of that name, imported once."""
    return import_generator(find_assignment(KIT, name))

"""Every assignment of the course, for tests that hold for each; and the generator code of one, for tests of it."""

from __future__ import annotations

import functools
from types import ModuleType

import pytest

from autograder.authoring.generator import import_generator
from autograder.grading.items import find_assignment, find_assignments

ASSIGNMENTS = find_assignments()
each_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)


@functools.cache
def generator_of(name: str) -> dict[str, ModuleType]:
    """`oracle`, `cases` and `mistakes` of the assignment of that name, imported once."""
    return import_generator(find_assignment(name))

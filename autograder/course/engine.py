"""What a grade depends on besides submission and fixtures: the code that grades, and the versions of what computes."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

from autograder.authoring.fixtures.stored_set import versions
from autograder.vocabulary.files import ENGINE

DECIDING = ("grading", "sandbox", "submissions", "vocabulary")  # the packages that a grade comes from


@functools.cache
def kit() -> Mapping[str, str]:
    """The digest of the engine's deciding modules and the versions, the same in a checkout and in a wheel."""
    engine = hashlib.sha256()
    paths = [ENGINE / "__init__.py", *(path for name in DECIDING for path in sorted((ENGINE / name).rglob("*.py")))]
    for path in paths:
        engine.update(f"{path.relative_to(ENGINE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return {"kit": engine.hexdigest()[:12], **versions()}


def grading_key(given: Mapping[str, str]) -> str:
    """One name for the engine, its versions and the modules that an assignment gives to submissions."""
    return hashlib.sha256(repr(sorted([*kit().items(), *given.items()])).encode()).hexdigest()[:16]

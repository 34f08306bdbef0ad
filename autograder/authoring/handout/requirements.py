"""What students, containers and the doctor find the kit to need: the requirements of the installed kit."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable

from autograder.grading.items import PACKAGES
from autograder.vocabulary.errors import ReleaseError

DISTRIBUTION = "policy-gradient-autograder"
STUDENT_REQUIREMENTS = (
    "torch", "einops", "numpy", "matplotlib", "safetensors", "tqdm", "pytest", "pytest-timeout",
)  # fmt: skip

ENGINES = {"numpy"}  # of what an assignment may do without, what the engine cannot

# What a student may have instead of the exact version that grading uses; each end is tried with every handout.
RANGES = {"torch": "torch>=2.6"}
RANGE_NOTE = "# Grading uses {}. With another version, an item that a seed decides may differ here and not there.\n"


def student_requirements(packages: Iterable[str] = PACKAGES) -> str:
    """What a student's machine needs for an assignment in these packages.

    Of torch whatever installs there, with a word on what grading uses.
    """
    exact = requirements(needed_with(packages)).splitlines(keepends=True)
    found = [RANGES.get(_name_of(line), line.rstrip("\n")) + "\n" for line in exact]
    pinned = [line.rstrip("\n") for line in exact if _name_of(line) in RANGES]
    return (RANGE_NOTE.format(", ".join(pinned)) if pinned else "") + "".join(found)


def needed_with(packages: Iterable[str]) -> tuple[str, ...]:
    """What checking and grading need for an assignment in these packages: the engine's own are always among them."""
    left_out = {*PACKAGES} - {*packages} - ENGINES
    return tuple(name for name in STUDENT_REQUIREMENTS if name not in left_out)


def requirements(names: Iterable[str] = STUDENT_REQUIREMENTS) -> str:
    """The packages of these names, with the versions that the installed kit asks for."""
    wanted = (entry.partition(";")[0].strip() for entry in installed_requirements())
    by_name = {_name_of(entry): entry for entry in wanted}
    return "".join(f"{by_name[name]}\n" for name in names)


def _name_of(entry: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", entry, maxsplit=1)[0]


def installed_requirements() -> list[str]:
    """The requirements of the installed kit, extras included: `torch==2.13.0`, `pytest>=9.0; extra == "test"`."""
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        raise ReleaseError("The kit is not installed here: python -m pip install -e . in its folder.") from None

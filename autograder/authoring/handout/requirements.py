"""What students, containers and the doctor find the kit to need: the requirements of the installed kit."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import io
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
import numpy as np
from autograder.authoring.handout.source_notebook import BEGIN, END, Notebook, read_extras, released, source_notebook, to_bytes
from autograder.authoring.fixtures.variants import Variants
from autograder.grading.cases import (
    Case,
)
from autograder.grading.fixtures import (
    MANIFEST,
    Fixtures,
    read_fixtures,
)
from autograder.grading.items import (
    UNTOUCHED,
    Assignment,
)
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import (
    file_stem,
)
from autograder.vocabulary.places import (
    ENGINE,
)
from autograder.vocabulary.text import number


DISTRIBUTION = "policy-gradient-autograder"
STUDENT_REQUIREMENTS = (
    "torch", "einops", "numpy", "matplotlib", "safetensors", "tqdm", "pytest", "pytest-timeout",
)  # fmt: skip


def requirements(names: Iterable[str] = STUDENT_REQUIREMENTS) -> str:
    """What a student's machine needs, with the versions that the installed kit asks for."""
    wanted = (entry.partition(";")[0].strip() for entry in installed_requirements())
    by_name = {re.split(r"[^A-Za-z0-9._-]", entry, maxsplit=1)[0]: entry for entry in wanted}
    return "".join(f"{by_name[name]}\n" for name in names)


def installed_requirements() -> list[str]:
    """The requirements of the installed kit, extras included: `torch==2.13.0`, `pytest>=9.0; extra == "test"`."""
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        raise ReleaseError("The kit is not installed here: python -m pip install -e . in its folder.") from None

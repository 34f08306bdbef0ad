"""Make what is uploaded to a platform so that it grades by itself: the engine, the stored cases, a script to start it.

A bundle for a platform's own container holds hidden cases; a repository on GitHub, which students clone, is the
handout and a workflow. No bundle holds the solution, the oracle or the mistakes. The scripts are in `templates/`; what
they start is `containers.py`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path

from autograder.authoring.handout.release import (
    ATTRIBUTES,
    GIT_ATTRIBUTES,
    Files,
    handout_files,
    needed_with,
    refuse_leaks,
    requirements,
    stub,
)
from autograder.grading.assignment import PACKAGES, UNTOUCHED, Assignment
from autograder.grading.fixtures import MANIFEST, read_fixtures
from autograder.platforms.containers import Visibility
from autograder.vocabulary.files import ENGINE

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
MINUTES = 20
TEMPLATES = Path(__file__).with_name("templates")


def gradescope_files(
    assignment: Assignment, fixtures: Path | None = None, hidden_cases: Visibility = "visible"
) -> Files:
    """Make the autograder for Gradescope: `setup.sh` and `run_autograder` at the top, as it wants them."""
    return {
        "setup.sh": _filled("setup.sh", index=TORCH_INDEX),
        "run_autograder": _filled("run_autograder", hidden_cases=hidden_cases),
        "requirements.txt": container_requirements(assignment.packages).encode(),
        **{f"kit/{name}": data for name, data in kit_files(assignment, fixtures).items()},
    }


def prairielearn_files(assignment: Assignment, image: str, fixtures: Path | None = None) -> Files:
    """Make a question of PrairieLearn, graded in `image`; what is hidden is in tests/, which students never see."""
    info = {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"policy-gradient-autograder/{assignment.name}")),
        "title": assignment.title,
        "topic": "Assignments",
        "tags": ["code", "external"],
        "type": "v3",
        "singleVariant": True,
        "partialCredit": True,
        "gradingMethod": "External",
        "externalGradingOptions": {
            "enabled": True,
            "image": image,
            "entrypoint": "/grade/tests/run.sh",
            "timeout": 600,
            "enableNetworking": False,
        },
    }
    return {
        "info.json": (json.dumps(info, indent=2) + "\n").encode(),
        "question.html": _filled("question.html", module=assignment.module),
        "tests/run.sh": _filled("run.sh"),
        f"tests/{GIT_ATTRIBUTES}": ATTRIBUTES.encode(),  # a course of PrairieLearn is a git repository
        "tests/Dockerfile": _filled("Dockerfile", index=TORCH_INDEX),
        "tests/requirements.txt": container_requirements(assignment.packages).encode(),
        **{f"tests/kit/{name}": data for name, data in kit_files(assignment, fixtures).items()},
    }


def github_files(assignment: Assignment) -> Files:
    """Make a template repository on GitHub: handout, workflow and what it runs. Raises ReleaseError on a leak."""
    files = handout_files(assignment)
    files[".github/workflows/check.yml"] = _filled("check.yml", index=TORCH_INDEX, minutes=str(MINUTES))
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    refuse_leaks(files, solution, read_fixtures(assignment))
    return dict(sorted(files.items()))


def kit_files(assignment: Assignment, fixtures: Path | None = None) -> Files:
    """Collect what grading one submission needs, laid out as the kit is: the engine and the stored cases, hidden too.

    fixtures   a folder with another term's set
    raises     FixtureError where the set is not whole
    """
    read_fixtures(assignment, folder=fixtures)
    stored = fixtures or assignment.folder
    files = {f"autograder/{path.relative_to(ENGINE).as_posix()}": path.read_bytes() for path in ENGINE.rglob("*.py")}
    below = f"fixtures/{assignment.name}"
    manifest = (stored / MANIFEST).read_bytes()
    for name in json.loads(manifest)["files"]:
        place = stored if name.endswith(".safetensors") else assignment.folder
        files[f"{below}/{name}"] = (place / name).read_bytes()
    files[f"{below}/{MANIFEST}"] = manifest
    files |= {f"{below}/{name}.py": text.encode() for name, text in assignment.given_sources().items()}
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    files[f"{below}/{UNTOUCHED}"] = stub(solution, assignment).encode()
    return dict(sorted(files.items()))


def container_requirements(packages: Iterable[str] = PACKAGES) -> str:
    """List what grading needs to import, notebooks included, with the versions of pyproject.toml."""
    lines = requirements(needed_with(packages)).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("pytest"))


def _filled(template: str, **values: str) -> bytes:
    """Fill a template: each of its words between two `@` gets a value."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name.upper()}@", value)
    return text.encode()

"""What is uploaded to a platform so that it grades by itself: the engine, the stored cases, a few lines to start them.

A bundle for a platform's own container holds hidden cases; a repository on GitHub, which students clone, is the
handout and a workflow. No bundle holds the solution, the oracle or the mistakes.
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
from autograder.grading.fixtures import MANIFEST, read_fixtures
from autograder.grading.items import PACKAGES, UNTOUCHED, Assignment
from autograder.platforms.gradescope.results import Visibility
from autograder.vocabulary.files import ENGINE

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
MINUTES = 20

SETUP = """\
#!/usr/bin/env bash
# Run once, as root, when the autograder is built: Python and the packages that grading needs.
set -euo pipefail
base=$(cd "$(dirname "$0")/.." && pwd)
export DEBIAN_FRONTEND=noninteractive
apt-get update && apt-get install -y --no-install-recommends python3 python3-venv
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  python=python3.11  # Ubuntu 22.04 has it beside its own
  apt-get install -y --no-install-recommends python3.11 python3.11-venv || {{
    echo "This image has $(python3 --version); 3.11 or newer is needed. Choose Ubuntu 24.04 as base image." >&2
    exit 1
  }}
fi
"$python" -m venv "$base/venv"
"$base/venv/bin/python" -m pip install --no-cache-dir --extra-index-url {index} -r "$base/source/requirements.txt"
"""

RUN = """\
#!/usr/bin/env bash
# Run as root for each submission. Without a results.json, the platform shows an error of the autograder and no score.
set -euo pipefail
umask 077
base=$(cd "$(dirname "$0")" && pwd)
chmod -R go-rwx "$base/source/kit/fixtures"
cd "$base/source/kit"
harness=autograder.platforms.containers.harness
exec "$base/venv/bin/python" -m "$harness" gradescope --base "$base" --hidden-cases {hidden_cases}
"""

PRAIRIELEARN_RUN = """\
#!/usr/bin/env bash
# Run as root for each submission, in an image that has what tests/Dockerfile installs.
set -euo pipefail
umask 077
base=$(cd "$(dirname "$0")/.." && pwd)
chmod -R go-rwx "$base/tests/kit/fixtures"
cd "$base/tests/kit"
exec "${PYTHON:-python3}" -m autograder.platforms.containers.harness prairielearn --base "$base"
"""

DOCKERFILE = """\
# The image to name in info.json. From this folder: docker build -t IMAGE . && docker push IMAGE
FROM python:3.12-slim
COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --extra-index-url {index} -r /tmp/requirements.txt
"""

QUESTION = """\
<pl-question-panel>
  <p>Complete the functions in <code>{module}.py</code> as the assignment text says, and upload the file.</p>
  <pl-file-upload file-names="{module}.py"></pl-file-upload>
</pl-question-panel>

<pl-submission-panel>
  <pl-external-grader-results></pl-external-grader-results>
  <pl-file-preview></pl-file-preview>
</pl-submission-panel>
"""

WORKFLOW = """\
# Runs the public cases at each push, in any organisation. Hidden cases never come here.
name: Public cases
"on":
  - push
  - workflow_dispatch
permissions:
  contents: read
jobs:
  public-cases:
    runs-on: ubuntu-24.04
    timeout-minutes: {minutes}
    steps:
      - name: Check out the code
        uses: actions/checkout@v4
      - name: Set up Python
        uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install packages
        run: python -m pip install --extra-index-url {index} -r requirements.txt
      - name: Public cases
        id: public-cases
        run: python -m autograder.checking.classroom
      - name: All of them pass
        run: test "${{{{steps.public-cases.outputs.points}}}}" = "${{{{steps.public-cases.outputs.max_points}}}}"
"""


def gradescope_files(
    assignment: Assignment, fixtures: Path | None = None, hidden_cases: Visibility = "visible"
) -> Files:
    """The autograder for Gradescope: `setup.sh` and `run_autograder` at the top, as it wants them."""
    return {
        "setup.sh": SETUP.format(index=TORCH_INDEX).encode(),
        "run_autograder": RUN.format(hidden_cases=hidden_cases).encode(),
        "requirements.txt": container_requirements(assignment.packages).encode(),
        **_below("kit", kit_files(assignment, fixtures)),
    }


def prairielearn_files(assignment: Assignment, image: str, fixtures: Path | None = None) -> Files:
    """A question of PrairieLearn, graded in `image`; what must be hidden is in tests/, which students never see."""
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
        "question.html": QUESTION.format(module=assignment.module).encode(),
        "tests/run.sh": PRAIRIELEARN_RUN.encode(),
        f"tests/{GIT_ATTRIBUTES}": ATTRIBUTES.encode(),  # a course of PrairieLearn is a git repository
        "tests/Dockerfile": DOCKERFILE.format(index=TORCH_INDEX).encode(),
        "tests/requirements.txt": container_requirements(assignment.packages).encode(),
        **_below("tests/kit", kit_files(assignment, fixtures)),
    }


def github_files(assignment: Assignment) -> Files:
    """A template repository on GitHub: handout, workflow and what it runs. Raises ReleaseError on a leak."""
    files = handout_files(assignment)
    files[".github/workflows/check.yml"] = WORKFLOW.format(index=TORCH_INDEX, minutes=MINUTES).encode()
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    refuse_leaks(files, solution, read_fixtures(assignment))
    return dict(sorted(files.items()))


def kit_files(assignment: Assignment, fixtures: Path | None = None) -> Files:
    """What grading one submission needs, laid out as the kit is: the engine and the stored cases, hidden ones too.

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
    """What grading needs to import, notebooks included, with the versions of pyproject.toml."""
    lines = requirements(needed_with(packages)).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("pytest"))


def _below(folder: str, files: Files) -> Files:
    return {f"{folder}/{name}": data for name, data in files.items()}

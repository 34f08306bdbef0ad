"""The README's commands are run, and must print what it shows.

`python tests/test_readme.py` runs them all and writes what they print into the README.

A `console` block holds commands after `$ ` and their output. Commands of one section run one after another in one
folder of a copy of the kit; installing is left out. Measured times, sizes and paths are not compared.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import KIT

from autograder.authoring.exam.exam import known_mistakes, right_answer_paths
from autograder.grading.items import find_assignment, find_assignments
from autograder.sandbox.layers import probe

pytestmark = pytest.mark.timeout(600)
README = KIT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
INSTALL = re.compile(r"python -m pip install \S+( \S+)?( && )?")
EXAM = "autograder selfcheck --assignment policy_gradient"
NOT_COPIED = (".git", "__pycache__", "*.egg-info", ".*_cache", ".venv", "grades", "build", ".hypothesis", "my-work")
MEASURED = (
    (re.compile(r"\d+\.\d+ ?s\b"), "N s"),
    (re.compile(r"[\d,]+ bytes"), "N bytes"),
    (re.compile(r"Linux \S+, Python [\d.]+, \d+ cores"), "MACHINE"),
    (re.compile(r"manifest [0-9a-f]{12}"), "manifest HASH"),
    (re.compile(r"\b\d+\.\d+\.\d+(\+cpu)?"), "VERSION"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A command of the README and what it says that this prints."""

    command: str
    output: str


def sections() -> list[tuple[str, list[Step]]]:
    """The steps of each section that has any, by its heading."""
    parts = re.split(r"^## (.+)$", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [(heading, list(steps(text))) for heading, text in zip(parts[1::2], parts[2::2], strict=True)]
    return [(heading, listed) for heading, listed in found if listed]


def steps(text: str) -> Iterator[Step]:
    for block in BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            yield Step(command, output)


@dataclass
class Shell:
    """Runs commands in a copy of the kit, and remembers where it is."""

    root: Path
    folder: Path

    def run(self, command: str) -> str:
        runnable = INSTALL.sub("", command)
        if not runnable:
            return ""
        script = f"{runnable}; status=$?; pwd > {self.root}/.folder; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.root), "COLUMNS": "110", "NO_COLOR": "1"}
            | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.folder = Path((self.root / ".folder").read_text().strip())
        shown = done.stdout.replace(str(self.root), "…")
        return "".join(line.rstrip() + "\n" for line in shown.splitlines())


def copy_of_the_kit(folder: Path) -> Shell:
    root = folder / "kit"
    shutil.copytree(KIT, root, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return Shell(root, root)


def comparable(text: str) -> list[str]:
    for pattern, instead in MEASURED:
        text = pattern.sub(instead, text)
    return [line.strip() for line in text.splitlines() if not line.startswith("NOT STRICT")]


@pytest.mark.parametrize(("heading", "listed"), sections(), ids=[heading for heading, _ in sections()])
def test_each_command_prints_what_the_readme_shows(heading: str, listed: list[Step], tmp_path: Path) -> None:
    shell = copy_of_the_kit(tmp_path)
    for step in listed:
        if step.command == "autograder doctor" and any(why for layer, why in probe().items() if layer != "cgroup"):
            continue  # it is shown for a machine with every layer of isolation but a control group of the staff's
        if step.command == EXAM:
            continue  # it takes minutes: test_selfcheck.py runs it, and holds what is shown against that
        shown, printed = comparable(step.output), comparable(shell.run(step.command))
        difference = "\n".join(difflib.unified_diff(shown, printed, "README.md", step.command, lineterm=""))
        assert shown == printed, f"{difference}\n\nIf this is meant: python tests/test_readme.py"


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    command = "python -m pip install -e '.[test]' && pytest"
    assert f"```sh\n{command}\n```" in README.read_text(encoding="utf-8")
    run = (KIT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python -m pip install --quiet -e '.[test]' && pytest" in run


def test_the_main_command_is_the_first_that_the_readme_shows() -> None:
    first = sections()[0][1][0].command
    assert first == "python -m pip install -e . && autograder grade fixtures/policy_gradient/submissions --out grades"


def test_every_file_and_folder_that_the_readme_links_or_lists_exists() -> None:
    text = README.read_text(encoding="utf-8")
    for name in re.findall(r"^\| `(\w+/)` \|", text, flags=re.MULTILINE):
        assert (KIT / name).is_dir()
    for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
        assert anchor in {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)}


def test_the_numbers_that_the_readme_gives_of_the_kit_are_right() -> None:
    text = README.read_text(encoding="utf-8")
    assert f"{len(known_mistakes(find_assignment('policy_gradient')))} known mistakes are told apart" in text
    assert f"all {len(find_assignment('policy_gradient').items)} items" in text
    for one in find_assignments():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{one.name}` |"))
        assert row.endswith(f"| {one.max_points:g} | {len(known_mistakes(one))} |")
    others = [len(right_answer_paths(one)) for one in find_assignments() if one.name != "policy_gradient"]
    assert f"(and {others[0]} and {others[1]} for the other two assignments)" in text
    assert f"{len(right_answer_paths(find_assignment('policy_gradient')))} correct submissions" in text
    assert f"{len(list((KIT / 'tests' / 'attacks').glob('*.py')))} attacks" in text


def renew() -> None:
    """Write what the commands print now into the README."""
    text = README.read_text(encoding="utf-8")
    for heading, listed in sections():
        with tempfile.TemporaryDirectory() as folder:
            shell = copy_of_the_kit(Path(folder))
            start = text.index(f"## {heading}\n")
            for step in listed:
                printed = shell.run(step.command)
                old, new = f"$ {step.command}\n{step.output}", f"$ {step.command}\n{printed}"
                if printed != step.output:
                    print(f"{heading}: {step.command}")
                at = text.index(old, start)
                text = text[:at] + new + text[at + len(old) :]
                start = at
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()

"""Those that are compared. Each grades copies of one right submission, item by item, and must find them all right.

    kit        python -m autograder grade, at `strict` and without any layer
    pytest     a generated test module, in a fresh process per submission
    nbgrader   nbgrader autograde, all submissions in one command, a locked test cell per item

The last two judge through `course_checks`, in the process that runs the submission. Preparing is not timed. None is
slowed down: threads are limited to one, which is fastest here, and pytest loads no plug-in that it does not need.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from places import KIT

from autograder.grading.assignment import Assignment
from autograder.sandbox.sandbox import layers_for
from autograder.vocabulary.errors import SandboxError
from benchmarks.measurements import CommandFailed, Measured, run, side_by_side

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Workshop:
    """Where a benchmark works, and on what.

    folder       a temporary folder; `folder/course` is what the in-process contenders need beside a submission
    source       the submission that is copied
    tools        the Python that has nbgrader; the kit and pytest run on this one
    """

    folder: Path
    assignment: Assignment
    source: str
    tools: str = sys.executable

    @property
    def course(self) -> Path:
        """The folder with the stored tensors, the probes and `course_checks`."""
        return self.folder / "course"

    @property
    def module(self) -> str:
        """The file name to hand in under."""
        return f"{self.assignment.module}.py"

    @property
    def points(self) -> dict[str, float]:
        """Every item's id with its points."""
        return {item.id: item.points for item in self.assignment.items}

    def handed_in(self, number: int) -> str:
        """The submission of one student: no two have the same bytes."""
        return f"{self.source}\n# Handed in by student {number}.\n"

    def fresh(self, name: str) -> Path:
        """A new empty folder of that name."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def grade_class(self, sources: Sequence[str], isolation: str, jobs: int) -> Measured:
        """Let the kit grade a class by one command; raises CommandFailed unless everybody has a report."""
        handed_in, out = self.fresh("class"), self.fresh("grades")
        for number, source in enumerate(sources):
            (handed_in / f"{student(number)}.py").write_text(source, encoding="utf-8")
        trust = ["--trust-this-code"] if isolation == "none" else []
        options = ["--out", str(out), "--isolation", isolation, "--jobs", str(jobs), "--fresh", *trust]
        measured = run([sys.executable, "-m", "autograder", "grade", str(handed_in), *options], KIT)
        if (reports := len(list((out / "reports").iterdir()))) != len(sources):
            raise CommandFailed(f"{reports} of {len(sources)} submissions have a report")
        return measured

    def write_course(self) -> None:
        """Make the course folder."""
        course, fixtures = self.fresh("course"), self.assignment.folder
        for name in ("public", "hidden"):
            shutil.copytree(fixtures / name, course / name)
        for path in (fixtures / "items.toml", fixtures / "probes.py", HERE / "course_checks.py"):
            shutil.copy(path, course)
        for name, text in self.assignment.given_sources().items():
            (course / f"{name}.py").write_text(text, encoding="utf-8")


def environment(workshop: Workshop, *, on_path: bool = True) -> dict[str, str]:
    """The environment of every contender but the kit: one thread, no user's own Jupyter settings."""
    jupyter = workshop.folder / "jupyter"
    settings = {name: str(jupyter / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    path = {"PYTHONPATH": str(workshop.course)} if on_path else {}
    programs = os.pathsep.join([str(Path(workshop.tools).parent), os.environ.get("PATH", os.defpath)])
    usual = {**os.environ, "PATH": programs}
    return {**usual, **settings, **path, "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def student(number: int) -> str:
    """The folder name of one student."""
    return f"s{number:05d}"


class Contender:
    """One tool in one mode; `name` is its row in the table."""

    name: str
    fresh_process = False  # whether each submission is a command of its own, so that there is no start to share

    def missing(self, workshop: Workshop) -> str:
        """Why it cannot run here; "" where it can."""
        return ""

    def prepare(self, workshop: Workshop) -> None:
        """Do once what a course does once."""

    def grade(self, workshop: Workshop, count: int, parallel: int) -> Measured:
        """Grade so many submissions, so many at a time; raises CommandFailed unless all of them earn all points."""
        raise NotImplementedError


class Kit(Contender):
    """This kit; `--isolation none` leaves each submission in a process of its own and nothing more."""

    def __init__(self, name: str, isolation: str) -> None:
        self.name, self._isolation = name, isolation

    def missing(self, workshop: Workshop) -> str:
        """Ask the kit itself whether the level holds here."""
        try:
            layers_for("strict" if self._isolation == "strict" else "none")
        except SandboxError as error:
            return str(error)
        return ""

    def grade(self, workshop: Workshop, count: int, parallel: int) -> Measured:
        """Grade by one command."""
        measured = workshop.grade_class([workshop.handed_in(n) for n in range(count)], self._isolation, parallel)
        for path in (workshop.folder / "grades" / "reports").iterdir():
            report = json.loads(path.read_text(encoding="utf-8"))
            _must_be_right(self.name, report["points"], report["max_points"])
        return measured


class Pytest(Contender):
    """pytest with a test per item."""

    name = "pytest, a fresh process each"
    fresh_process = True

    def missing(self, workshop: Workshop) -> str:
        """It is among what the kit's own tests need."""
        return _missing(sys.executable, "pytest", "pip install -e '.[test]'")

    def prepare(self, workshop: Workshop) -> None:
        """Write the test module."""
        (workshop.course / "test_items.py").write_text(
            "import course_checks\n"
            f"import {workshop.assignment.module} as student\n"
            "import pytest\n\n\n"
            "@pytest.mark.parametrize('item', course_checks.items())\n"
            "def test_item(item):\n"
            "    course_checks.check(item, student)\n"
        )

    def grade(self, workshop: Workshop, count: int, parallel: int) -> Measured:
        """One process per submission."""
        handed_in = workshop.fresh("pytest-class")
        folders = [handed_in / student(number) for number in range(count)]
        for number, folder in enumerate(folders):
            folder.mkdir()
            (folder / workshop.module).write_text(workshop.handed_in(number), encoding="utf-8")
            shutil.copy(workshop.course / "test_items.py", folder)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "test_items.py"]
        measured = side_by_side(
            [functools.partial(run, command, folder, environment(workshop)) for folder in folders], parallel
        )
        passed = measured.output.count(f"{len(workshop.points)} passed in")
        _must_be_right(self.name, passed, count)
        return measured


class Nbgrader(Contender):
    """nbgrader with all submissions in one command; side by side means as many commands, each with its part of them."""

    name = "nbgrader autograde, one command"

    def missing(self, workshop: Workshop) -> str:
        """It is an extra."""
        return _missing(workshop.tools, "nbgrader")

    def prepare(self, workshop: Workshop) -> None:
        """Let nbgrader make the release version, and so its gradebook, from a source notebook."""
        course = workshop.fresh("nbgrader-course")
        (course / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'bench'\n")
        write_notebook(course / "source" / "ps1" / "ps1.ipynb", workshop, "raise NotImplementedError")
        run([*self._command(workshop, "generate_assignment"), "ps1"], course, environment(workshop))

    def grade(self, workshop: Workshop, count: int, parallel: int) -> Measured:
        """One command for each part of the class."""
        parts = [range(first, count, parallel) for first in range(min(parallel, count))]
        courses = [self._course(workshop, part) for part in parts]
        command = [*self._command(workshop, "autograde"), "ps1"]
        measured = side_by_side(
            [functools.partial(run, command, course, environment(workshop)) for course in courses], parallel
        )
        points = sum(workshop.points.values())
        for course, part in zip(courses, parts, strict=True):
            for score in _nbgrader_scores(course, len(part)):
                _must_be_right(self.name, score, points)
        return measured

    def _command(self, workshop: Workshop, verb: str) -> list[str]:
        return [workshop.tools, "-m", "nbgrader", verb]

    def _course(self, workshop: Workshop, part: Sequence[int]) -> Path:
        """A copy of the prepared course that has the notebooks of these students."""
        course = workshop.folder / f"nbgrader-{part[0]}"
        shutil.rmtree(course, ignore_errors=True)
        shutil.copytree(workshop.folder / "nbgrader-course", course)
        for number in part:
            path = course / "submitted" / student(number) / "ps1" / "ps1.ipynb"
            write_notebook(path, workshop, workshop.handed_in(number))
        return course


def _nbgrader_scores(course: Path, count: int) -> list[float]:
    """The points that nbgrader gave, from its gradebook; raises CommandFailed where somebody is not in it."""
    query = (
        "SELECT submitted_notebook.id, SUM(grade.auto_score) FROM grade "
        "JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id GROUP BY submitted_notebook.id"
    )
    with sqlite3.connect(course / "gradebook.db") as database:
        scores = [score for _, score in database.execute(query)]
    if len(scores) != count:
        raise CommandFailed(f"nbgrader graded {len(scores)} of {count} submissions")
    return scores


def write_notebook(path: Path, workshop: Workshop, answer: str) -> None:
    """A notebook as nbgrader wants it: the answer in one cell, then a locked cell of points for each item."""
    setup = f"import sys\nsys.path.insert(0, {str(workshop.course)!r})"
    calls = "import course_checks, sys\ncourse_checks.check({item!r}, sys.modules['__main__'])"
    cells = [nbformat.v4.new_code_cell(setup), _graded_cell("answer", answer, solution=True)]
    for item, points in workshop.points.items():
        cells.append(_graded_cell(item, calls.format(item=item), points=points))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def _graded_cell(name: str, text: str, *, solution: bool = False, points: float | None = None) -> nbformat.NotebookNode:
    locked = points is not None
    settings = {"grade": locked, "grade_id": name, "locked": locked, "schema_version": 3, "solution": solution}
    extra = {"points": points} if locked else {}
    return nbformat.v4.new_code_cell(text, metadata={"nbgrader": {**settings, **extra, "task": False}})


def contenders() -> list[Contender]:
    """All of them, the kit at `strict` first."""
    return [Kit("this kit, strict", "strict"), Kit("this kit, process", "none"), Pytest(), Nbgrader()]


def _must_be_right(name: str, found: float | None, wanted: float) -> None:
    if found != wanted:
        raise CommandFailed(f"{name} gave {found} where {wanted} is right: it did not grade what it should")


def _missing(python: str, package: str, how: str = "pip install -e '.[bench]'") -> str:
    looked = f"import sys; from importlib.util import find_spec; sys.exit(find_spec({package!r}) is None)"
    found = subprocess.run([python, "-c", looked], check=False).returncode == 0
    return "" if found else f"not installed: {how}"

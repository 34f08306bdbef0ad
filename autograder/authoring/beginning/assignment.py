"""A solution file → a complete assignment in a course: written, tried, its mistakes chosen, its fixtures made."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.beginning import texts
from autograder.authoring.beginning.answers import Tried
from autograder.authoring.beginning.choosing import choose
from autograder.authoring.beginning.clauses import contract_text
from autograder.authoring.beginning.entries import Allowances, cases_text, entries
from autograder.authoring.beginning.likely_mistakes import Candidate
from autograder.authoring.beginning.signatures import Solution
from autograder.authoring.beginning.trial import Bench
from autograder.authoring.declarations import OPEN_SECRET
from autograder.authoring.exam.contract import CONTRACT, read_contract
from autograder.authoring.fixtures.generator import Generator, regenerate
from autograder.authoring.handout.release import handout_files, write_source_notebook
from autograder.checking.handout import write_handout
from autograder.grading.cases import Case
from autograder.grading.items import Assignment, load_assignment
from autograder.sandbox.apart import apart
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, UsageError

IDLE = re.compile(r"(?P<case>[\w.-]+): (?:given\.)?(?P<name>\w+) does not matter")
CASE = re.compile(r"(?P<case>[a-z0-9.-]+-(?:case|slope)-(?!small)[a-z0-9-]+): ")
MOST_REPAIRS = 40


@dataclass(frozen=True)
class Begun:
    """What was written, in numbers; of which functions no mistake is known; lines of clauses that are drafts.

    alike   functions that answer the same in all their cases
    """

    items: int
    cases: int
    mistakes: int
    without: tuple[str, ...]
    open_clauses: tuple[str, ...]
    alike: tuple[str, ...] = ()


def check_name(root: Path, name: str) -> None:
    """Raise UsageError where an assignment cannot be called that, or something is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be a module's name: small letters, digits and _, such as linear_algebra.")
    for folder in (root / "fixtures" / name, root / "solution" / name, root / "handout" / name):
        if folder.exists():
            raise UsageError(f"{folder} is there already: nothing was written. Give another name.")


def new_assignment(root: Path, name: str, title: str, solution: Solution) -> Begun:
    """Write the assignment into the course `root`, whole or not at all; its handout is a draft."""
    check_name(root, name)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".new-") as folder:
        begun = apart(_begin, Path(folder), name, title, solution)
        for part in ("solution", "fixtures"):
            (root / part).mkdir(exist_ok=True)
            (Path(folder) / part / name).replace(root / part / name)
    try:
        assignment = load_assignment(root / "fixtures" / name)
        write_source_notebook(assignment)
        write_handout(handout_files(assignment), assignment.handout)
    except BaseException:  # Ctrl-C too
        for part in ("solution", "fixtures", "handout"):
            shutil.rmtree(root / part / name, ignore_errors=True)
        raise
    return begun


def _begin(root: Path, name: str, title: str, solution: Solution) -> Begun:
    sys.dont_write_bytecode = True  # files are written again within a second
    with Sandbox() as sandbox:
        bench = Bench(solution, sandbox)
        writing = _Writing(root, name, title, solution, bench.all_tried(), sandbox)
        chosen, cases, alike = writing.all()
        without = tuple(function for function, several in chosen.items() if not several)
        assignment = load_assignment(root / "fixtures" / name)
        contract = read_contract(assignment)
        drafts = tuple(f"{one.line}: {one.sentence!r}" for one in contract.drafts) if contract else ()
        return Begun(len(assignment.items), cases, sum(map(len, chosen.values())), without, drafts, alike)


@dataclass(frozen=True)
class _Writing:
    root: Path
    name: str
    title: str
    solution: Solution
    tried: Sequence[Tried]
    sandbox: Sandbox

    def all(self) -> tuple[Mapping[str, Sequence[Candidate]], int, tuple[str, ...]]:
        """Write everything and make the fixtures; the mistakes that were chosen, the number of cases, what is alike."""
        text = texts.marked(self.solution)
        allowed = Allowances()
        self._write(allowed, {})
        cases = self._cases(allowed)
        functions = [one.function for one in self.tried]
        found = {one.name: choose(self._assignment, cases, text, one, self.sandbox) for one in functions}
        chosen = {name: choice.mistakes for name, choice in found.items()}
        self._write(allowed, {name: several for name, several in chosen.items() if several})
        if any(one.docstring for one in functions):
            violations = {name: choice.violations for name, choice in found.items()}
            self._write_contract(contract_text(functions, violations))
        alike = tuple(one.name for one in functions if answers_alike(one.name, cases))
        return chosen, regenerate(self._assignment, self._assignment.folder, sandbox=self.sandbox), alike

    def _write_contract(self, text: str) -> None:
        (self.root / "fixtures" / self.name / CONTRACT).write_text(text, encoding="utf-8")

    @property
    def _assignment(self) -> Assignment:
        return load_assignment(self.root / "fixtures" / self.name)

    def _cases(self, allowed: Allowances) -> list[Case]:
        """The cases, once those that cannot grade are gone and arguments that need not matter are said to be free."""
        for _ in range(MOST_REPAIRS):
            try:
                return Generator.of(self._assignment, self.sandbox).complete(OPEN_SECRET)[1]
            except FixtureError as error:
                if not _allow(str(error), allowed):
                    raise
            self._write(allowed, {})
        raise FixtureError(f"{self.name}: no set of cases was found that could grade.")

    def _write(self, allowed: Allowances, mistakes: Mapping[str, Sequence[Candidate]]) -> None:
        listed = entries(self.tried, allowed)
        functions = [one.function for one in self.tried]
        fixtures, solution = (self.root / part / self.name for part in ("fixtures", "solution"))
        for path, text in (
            (fixtures / "items.toml", texts.items_text(self.name, self.title, listed, self.solution)),
            (fixtures / "cases.py", cases_text(listed, self.solution)),
            (fixtures / "oracle.py", texts.oracle_text(self.tried, self.solution)),
            (fixtures / "probes.py", texts.probes_text()),
            (fixtures / "mistakes.py", texts.mistakes_text(self.name, mistakes)),
            (solution / f"{self.name}.py", texts.marked(self.solution)),
            (solution / "README.md", texts.readme_text(self.name, self.title, functions)),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def answers_alike(function: str, cases: Sequence[Case]) -> bool:
    """Whether a function's cases all expect the same to be returned, or there is but one."""
    judged = [
        [one for one in case.expected if one.kind in ("value", "fact")] for case in cases if case.function == function
    ]
    told = [
        [(e.name, e.value, e.array is not None and e.array.tolist()) for e in several] for several in judged if several
    ]
    return bool(told) and all(one == told[0] for one in told)


def _allow(refusal: str, allowed: Allowances) -> bool:
    """Make room for what a build refused; False where nothing can be done about it."""
    if idle := IDLE.match(refusal):
        names = allowed.free.setdefault(idle["case"], [])
        known = idle["name"] in names
        names.append(idle["name"])
        return not known
    if (case := CASE.match(refusal)) and case["case"] not in allowed.dropped:
        allowed.dropped.add(case["case"])
        return True
    return False

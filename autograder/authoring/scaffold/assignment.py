"""Write an assignment into a course: its declarations, items, catalogue, oracle, probes, text, fixtures, handout."""

from __future__ import annotations

import contextlib
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.authoring.declarations import OPEN_SECRET, Draft, check_draft
from autograder.authoring.fixtures.regenerate import (
    FUNCTIONS,
    Drawing,
    case_of,
    check_solution,
    import_generator,
    regenerate,
)
from autograder.authoring.handout.release import handout_files, write_source_notebook
from autograder.authoring.laws.exam import Planned
from autograder.authoring.laws.laws import LAWS
from autograder.authoring.scaffold.declared import PROBES, Declared, Trial, functions_text
from autograder.authoring.scaffold.solution import Argument, Solution
from autograder.checking.handout import write_handout
from autograder.grading.assignment import PACKAGES, Assignment, Item, load_assignment
from autograder.grading.fixtures import Case
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, UsageError

ITEMS = {  # end of an id → points in proportion, title, hint
    "values": (5, "what {} returns", "Work the public case out by hand, value by value: where does yours depart?"),
    "gradient": (3, "the gradient of {}", "Does every step of the computation stay in the graph?"),
    "errors": (2, "arguments that {} refuses", "Which arguments does the docstring refuse, and with which exception?"),
    "form": (1, "the form of {}", "What comes back, and what do the caller's arguments hold afterwards?"),
}  # fmt: skip


@dataclass(frozen=True)
class Begun:
    """What was written: numbers of items and cases, and of lines that say TODO; functions that answered no draw."""

    items: int
    cases: int
    todos: int
    unanswered: tuple[str, ...]


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
        begun = run_in_subprocess(_begin, Path(folder), name, title, solution)
        for part in ("solution", "fixtures"):
            (root / part).mkdir(exist_ok=True)
            (Path(folder) / part / name).replace(root / part / name)
    try:
        assignment = load_assignment(root / "fixtures" / name)
        write_source_notebook(assignment)
        if begun.cases:
            write_handout(handout_files(assignment), assignment.handout)
    except BaseException:  # Ctrl-C too
        for part in ("solution", "fixtures", "handout"):
            shutil.rmtree(root / part / name, ignore_errors=True)
        raise
    return begun


def _begin(root: Path, name: str, title: str, solution: Solution) -> Begun:
    sys.dont_write_bytecode = True  # files are written again within a second
    with Sandbox() as sandbox:
        trial = Trial(solution, sandbox)
        declared = [trial.declared(function) for function in solution.functions]
        files = _Files(root, name, title, solution)
        files.write(declared)
        answered = [one for one in declared if not one.problem]
        before = list[Declared]()
        while answered and declared != before:  # without a law, other cases have other sizes
            before, declared = declared, _examined(files.assignment, declared, sandbox)
            files.write(declared)
            answered = [one for one in declared if not one.problem]
        cases = regenerate(files.assignment, files.fixtures, sandbox=sandbox) if answered else 0
        written = (path.read_text(encoding="utf-8") for path in files.fixtures.iterdir() if path.is_file())
        todos = sum(text.count("# TODO: ") for text in written)
        unanswered = tuple(one.function.name for one in declared if one.problem)
        return Begun(len(files.assignment.items), cases, todos, unanswered)


def _examined(assignment: Assignment, declared: Sequence[Declared], sandbox: Sandbox) -> list[Declared]:
    """Hold the solution against each case that a law derives; name the laws that it does not keep."""
    exam, drawing = import_generator(assignment)[FUNCTIONS].EXAM, Drawing(assignment, sandbox)
    cases_of = exam.planned(assignment)
    off = {one.function.name: {**one.off} for one in declared}
    answers: dict[str, list[object]] = {one.function.name: [] for one in declared}

    def drafted(item: Item, planned: Planned) -> tuple[Draft, Case]:
        draft = exam.draft(planned, OPEN_SECRET, drawing)
        check_draft(draft)
        return draft, case_of(item, draft, planned.visibility)

    def check(*several: tuple[Draft, Case]) -> None:
        check_solution(assignment, [case for _, case in several], {draft.case: draft for draft, _ in several}, sandbox)

    def blame(item: Item, planned: Planned, error: Exception) -> None:
        """Note the law of the item without which the case passes; else the one that adds the case."""
        why = " ".join(str(error).removeprefix(f"{planned.case}: ").split())[:120]
        for law in (LAWS[name] for name in item.laws if LAWS[name].aspects):
            with contextlib.suppress(Exception):
                check(drafted(item, replace(planned, aspects=planned.aspects - law.aspects)))
                off[item.function].setdefault(law.name, why)
                return
        off[item.function].setdefault(planned.law.name, why)

    for item in assignment.items:
        made = []
        for planned in cases_of[item.id]:
            try:
                made.append((planned, drafted(item, planned)))
            except Exception as error:  # NumPy's own, too, of arguments that a law changed
                blame(item, planned, error)
        answers[item.function] += [_answer(case) for _, (_, case) in made]
        try:
            check(*(several for _, several in made))
        except FixtureError:
            for planned, several in made:
                try:
                    check(several)
                except FixtureError as error:
                    blame(item, planned, error)
    return [
        replace(
            one,
            off={law: why for law, why in off[one.function.name].items() if law != "values"},
            problem=one.problem or off[one.function.name].get("values", ""),
            alike=not one.problem and all(told == answers[one.function.name][0] for told in answers[one.function.name]),
        )
        for one in declared
    ]


def _answer(case: Case) -> object:
    judged = [one for one in case.expected if one.kind == "value" or one.name == "result"]
    return [(one.name, one.value, None if one.array is None else one.array.tolist()) for one in judged]


@dataclass(frozen=True)
class _Files:
    root: Path
    name: str
    title: str
    solution: Solution

    @property
    def fixtures(self) -> Path:
        return self.root / "fixtures" / self.name

    @property
    def assignment(self) -> Assignment:
        return load_assignment(self.fixtures)

    def write(self, declared: Sequence[Declared]) -> None:
        """Write all that is not generated."""
        solution = self.root / "solution" / self.name
        for path, text in (
            (self.fixtures / "functions.py", functions_text(declared)),
            (self.fixtures / "items.toml", self._items(declared)),
            (self.fixtures / "oracle.py", _oracle(declared)),
            (self.fixtures / "probes.py", PROBES),
            (self.fixtures / "mistakes.py", self._mistakes(declared)),
            (solution / f"{self.name}.py", self.solution.text),
            (solution / "README.md", self._readme(declared)),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def _items(self, declared: Sequence[Declared]) -> str:
        """Write items.toml, the items of functions that answer nothing in comments."""
        live = [one for one in declared if not one.problem] or declared
        entries = [(one, *entry) for one in live for entry in _laws(one)]
        points = _shares([ITEMS[kind][0] for _, kind, _ in entries], 100)
        imported = [one for one in PACKAGES if re.search(rf"^\s*(?:import|from) {one}\b", self.solution.text, re.M)]
        packages = "" if self.solution.values == "torch" else f"packages = {_listed(imported)}\n"
        head = (
            f'assignment = "{self.name}"\ntitle = {_toml(self.title)}\nmodule = "{self.name}"\n{packages}points = 100\n'
        )
        texts = [_item(one, kind, laws, share) for (one, kind, laws), share in zip(entries, points, strict=True)]
        for one in declared:
            texts += [_commented(_item(one, kind, laws, 0)) for kind, laws in _laws(one) if one not in live]
        return head + "".join(texts)

    def _mistakes(self, declared: Sequence[Declared]) -> str:
        names = [one.function.name for one in declared]
        constants = "".join(f'{name.upper()} = Correct.from_solution(SOLUTION, "{name}")\n' for name in names)
        return f'''\
"""Wrong answers that are known by name. A hint is a question or a pointer, never the corrected line."""

from pathlib import Path

from autograder.authoring.catalogue import Correct, Mistake

SOLUTION = (Path(__file__).parents[2] / "solution/{self.name}/{self.name}.py").read_text(encoding="utf-8")
{constants}
MISTAKES: tuple[Mistake, ...] = (
    # TODO: what do students get wrong? {names[0].upper()}.but("its-name", "A question?", ("right text", "wrong text")),
)
'''

    def _readme(self, declared: Sequence[Declared]) -> str:
        sections = "".join(f"\n## `{one.function.name}`\n\n{_about(one)}\n" for one in declared)
        names = ", ".join(f"`{one.function.name}`" for one in declared)
        return f"""\
# {self.title}

You complete {names} in `{self.name}.py`, or in the notebook `{self.name}.ipynb`, which is the same. The docstrings are
the specification.

## How to check your work

In this folder, after `pip install -r requirements.txt`:

```sh
python -m autograder check                 # every item with its points, and what is wrong
python -m autograder check --item NAME     # one item, by the name that the first command prints
```

## Points

<!-- points:begin -->
<!-- points:end -->
{sections}
## How to hand in

Hand in `{self.name}.py` or `{self.name}.ipynb`.
"""


def _laws(one: Declared) -> Iterator[tuple[str, list[str]]]:
    """Say which items a function gets, and the laws of each; none of which all laws are off."""
    yield from ((kind, laws) for kind, laws in _all_laws(one) if {*laws} - one.off.keys())


def _all_laws(one: Declared) -> Iterator[tuple[str, list[str]]]:
    has_arrays = any(argument.axes is not None for argument in one.arguments) and one.values != "python"
    values = ["values", *(["sizes"] if one.axes else []), *(["layout"] if has_arrays else [])]
    if one.returns is None:  # what is compared as it is, is compared in every item: one of them is enough
        yield "values", [*values, "unmodified", "signature"]
        return
    yield "values", [*values, *([] if any(argument.kind == "function" for argument in one.arguments) else ["state"])]
    if one.leaves:
        yield "gradient", ["gradient"]
    if one.refused:
        yield "errors", ["errors"]
    yield "form", ["dtype", "kind", "unmodified", "signature"]


def _item(one: Declared, kind: str, laws: Sequence[str], points: int) -> str:
    function = one.function
    _, title, hint = ITEMS[kind]
    draws = f"draws = {_listed(one.draws)}\n" if kind == "values" and one.draws[1:] else ""
    note = (
        "# TODO: a hint of its own: what should they ask themselves whose answer is wrong?\n"
        if kind == "values"
        else ""
    )
    return f"""
[[item]]
id = "{function.slug}-{kind}"
function = "{function.name}"
title = {_toml(title.format(function.name))}
points = {points}
{note}hint = {_toml(hint)}
laws = {_listed(laws)}
{draws}"""


def _commented(text: str) -> str:
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# TODO: ")]
    return "".join(f"# {line}" if line.strip() else line for line in lines)


def _shares(weights: Sequence[int], total: int) -> list[int]:
    """Whole numbers in these proportions, the largest remainders rounded up."""
    exact = [total * weight / sum(weights) for weight in weights]
    shares = [int(one) for one in exact]
    for place in sorted(range(len(exact)), key=lambda k: shares[k] - exact[k])[: total - sum(shares)]:
        shares[place] += 1
    return shares


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_toml, names))}]"


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _sum(one: Declared) -> str:
    return f"of the sum of {' and '.join(one.sloped)}, " if len(one.sloped) > 1 else ""


def _oracle(declared: Sequence[Declared]) -> str:
    """Write oracle.py, in which nothing is independent yet."""
    names = "".join(f'    "{one.function.name}",\n' for one in declared)
    wanted = "".join(
        f"# def {name}({', '.join(map(_parameter, one.arguments))}): ...{what}\n"
        for one in declared
        for name, what in (
            (one.function.name, ""),
            *(
                [(f"{one.function.name}_gradient", f"  # {_sum(one)}with respect to {', '.join(one.leaves)}")]
                if one.leaves
                else []
            ),
        )
    )
    return f'''\
"""Expected values, worked out another way than the solution's: loops, closed forms, numbers from a book.

NOTHING HERE IS INDEPENDENT YET. The functions below are graded by what the solution says of itself, so a mistake of
the solution's counts as right, and `release` refuses to make a handout for students. For each one: write it here, with
the same arguments (arrays come in float64), and take its name off the list.
"""

NOT_INDEPENDENT = {{
{names}}}

{wanted}'''


def _parameter(one: Argument) -> str:
    return f"{one.name}={one.default[0]!r}" if one.default else one.name


def _about(one: Declared) -> str:
    places = [_parameter(argument) for argument in one.arguments if not argument.by_name]
    by_name = [_parameter(argument) for argument in one.arguments if argument.by_name]
    arguments = ", ".join([*places, *(["*"] if by_name else []), *by_name])
    said = one.function.summary or "Complete the function."
    return f"`{one.function.name}({arguments})`: {said[0].lower()}{said[1:]}"

"""First-order mutants of a solution: one thing in one of its functions is changed, and points must be lost.

Three families: what becomes of each parameter, the habits of students, and mutmut's operators. The lines at which some
leave a function what it is are marked in the solution, each with the reason.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.authoring.exam.graded_text import Change, GradedText, graded_texts
from autograder.authoring.exam.habits import arithmetic, chance, models, tensors, training
from autograder.authoring.exam.operators import mutated
from autograder.authoring.exam.parameters import parameter_changes
from autograder.authoring.marks import marks

NEXT_LINE = " ⏎ "
MOST_LINES = 6
Family = Literal["parameter", "habit", "operator"]

HABITS: dict[str, Callable[[GradedText], Iterator[Change]]] = {
    "clamp": arithmetic.clamped,
    "constant-in-logarithm": arithmetic.constant_in_logarithm,
    "nan-to-num": arithmetic.nan_to_num,
    "isclose-for-eq": arithmetic.isclose_for_equal,
    "one-pass-variance": arithmetic.one_pass_variance,
    "another-ddof": arithmetic.another_ddof,
    "truncation": arithmetic.truncated,
    "cast": tensors.cast,
    "dtype-dropped": tensors.dtype_dropped,
    "in-place": tensors.in_place,
    "not-cloned": tensors.not_cloned,
    "reshape-for-permute": tensors.reshaped,
    "axis-dropped": tensors.axis_dropped,
    "array-of-integers": tensors.array_of_integers,
    "global-random-state": chance.global_random_state,
    "own-seed": chance.own_seed,
    "size-written-in": tensors.size_written_in,
    "mode-around-call": models.mode_around_call,
    "detach-for-no-grad": models.detach_for_no_grad,
    "detach-dropped": models.detach_dropped,
    "detached": models.detached,
    "calls-remembered": models.calls_remembered,
    "second-pass": models.second_pass,
    "another-optimizer": training.another_optimizer,
    "optimizer-anew": training.optimizer_anew,
    "learning-rate-schedule": training.learning_rate_schedule,
    "gradients-clipped": training.gradients_clipped,
    "gradients-cleared-late": training.gradients_cleared_late,
    "stopped-early": training.stopped_early,
    "shallow-copy": training.shallow_copy,
}


@dataclass(frozen=True)
class Mutant:
    """The solution with one change: the changed lines of `function` before and after, without indentation and comment.

    slug     what is done: `epsilon-ignored`, the name of a habit; "" of mutmut's operators
    reason   why it may be the same function still, as its line is marked; "" where nothing says so
    line     of the solution, the first that is changed
    """

    family: Family
    slug: str
    function: str
    source: str
    before: str
    after: str
    reason: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """What clauses and costs call it: `habit:isclose-for-eq`."""
        return f"{self.family}:{self.slug}" if self.slug else self.family


def can_mutate() -> bool:
    """Whether mutmut is installed; it comes with the extra `test`."""
    return importlib.util.find_spec("mutmut") is not None


def generated_mutants(solution: str, functions: Sequence[str]) -> list[Mutant]:
    """The mutants of the parameters and habits of these functions, each text once."""
    return _distinct(solution, _generated(solution, functions))


def mutants_of(solution: str, functions: Sequence[str]) -> list[Mutant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with."""
    return _distinct(
        solution,
        [*_generated(solution, functions), *(_operated(solution, functions) if can_mutate() else ())],
    )


def _generated(solution: str, functions: Sequence[str]) -> Iterator[tuple[Family, str, str, str]]:
    """Family, slug, function and whole text of each mutant of parameters and habits."""
    for graded in graded_texts(solution, functions):
        for slug, change in parameter_changes(graded):
            yield "parameter", slug, graded.name, graded.changed(change)
        for slug, habit in HABITS.items():
            for change in habit(graded):
                yield "habit", slug, graded.name, graded.changed(change)


def _operated(solution: str, functions: Sequence[str]) -> Iterator[tuple[Family, str, str, str]]:
    yield from (("operator", "", function, text) for function, text in mutated(solution, functions))


def _distinct(solution: str, changes: Iterable[tuple[Family, str, str, str]]) -> list[Mutant]:
    """The first of those that have the same text."""
    reasons = marks(solution)
    by_text: dict[str, Mutant] = {}
    for family, slug, function, text in changes:
        if text != solution and text not in by_text:
            before, after = changed_lines(solution, text)
            line = first_difference(solution, text)
            by_text[text] = Mutant(family, slug, function, text, before, after, reasons.get(line, ""), line)
    return list(by_text.values())


def first_difference(before: str, after: str) -> int:
    """The first line of a text that is another one, or stands elsewhere, in a second text; lines count from 1."""
    pairs = itertools.zip_longest(before.splitlines(), after.splitlines())
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 0)


def changed_lines(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, without indentation and comment; where lines are only added, with the one that follows.

    With the lines between them too, where they are few.
    """
    one, other = before.splitlines(), after.splitlines()
    changes = _differences(one, other)
    if changes[-1][1] - changes[0][0] <= MOST_LINES:
        changes = [(changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])]
    start, end, to, until = changes[0]
    if start == end:
        context = 1 + next((skipped for skipped, line in enumerate(one[end:]) if line.strip()), 0)
        changes[0] = (start, end + context, to, until + context)
    removed = [line for start, end, _, _ in changes for line in one[start:end]]
    added = [line for _, _, start, end in changes for line in other[start:end]]
    return _joined(removed), _joined(added)


def _differences(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Start and end of each difference, in one and in the other; what they begin and end with alike is not searched."""
    shorter = min(len(one), len(other))
    begin = next((k for k in range(shorter) if one[k] != other[k]), shorter)
    alike = next((k for k in range(shorter - begin) if one[-1 - k] != other[-1 - k]), shorter - begin)
    inner = one[begin : len(one) - alike], other[begin : len(other) - alike]
    codes = difflib.SequenceMatcher(None, *inner, autojunk=False).get_opcodes()
    return [
        (begin + start, begin + end, begin + to, begin + until)
        for tag, start, end, to, until in codes
        if tag != "equal"
    ]


def _joined(lines: Iterable[str]) -> str:
    stripped = (line.partition("  #")[0].strip() for line in lines)
    return NEXT_LINE.join(line for line in stripped if line)

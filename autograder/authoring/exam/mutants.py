"""First-order mutants of a solution: one thing in one of its functions is changed, and points must be lost.

Three families: what becomes of each parameter, the habits of students, and mutmut's operators. Those that leave a
function what it is stand in the assignment's `equivalent_mutants.toml`, each with the reason.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from autograder.authoring.exam.graded_text import Change, GradedText, graded_texts
from autograder.authoring.exam.habits import arithmetic, chance, models, tensors, training
from autograder.authoring.exam.operators import mutated
from autograder.authoring.exam.parameters import parameter_changes
from autograder.vocabulary.errors import FixtureError

EQUIVALENT = "equivalent_mutants.toml"
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

    slug         what is done: `epsilon-ignored`, the name of a habit; "" of mutmut's operators
    reason       why it is the same function still; "" where it is not
    line         of the solution, the first that is changed
    occurrence   which one it is, in the order of lines, of those that are told in the same lines; 0 where it is alone
    """

    family: Family
    slug: str
    function: str
    source: str
    before: str
    after: str
    reason: str = ""
    line: int = 0
    occurrence: int = 0

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


def mutants_of(solution: str, functions: Sequence[str], folder: Path) -> list[Mutant]:
    """Every mutant of these functions, with the reason of those that `folder` lists as equivalent.

    Raises FixtureError where the list cannot be read or names a change that is not made.
    """
    reasons = _reasons(folder / EQUIVALENT)
    changes = [*_generated(solution, functions), *(_operated(solution, functions) if can_mutate() else ())]
    found = [_with_reason(one, reasons) for one in _distinct(solution, changes)]
    made = {key for mutant in found for key in (_key(mutant), _key(mutant)[:-1])}
    if can_mutate() and (unmade := sorted(reasons.keys() - made)):
        function, before, after, *occurrence = unmade[0]
        others = [one.before for one in found if (one.function, one.after) == (function, after)]
        if others and before not in others:
            (other,) = difflib.get_close_matches(before, others, 1, 0)
            what = f"a change of {function} to {after!r} whose `before` differs: it is {before!r} there"
            raise FixtureError(f"{folder / EQUIVALENT} lists {what}, and {other!r} in the one that is made.")
        near = difflib.get_close_matches(after, [one.after for one in found if one.function == function], 1, 0)
        closest = f" The one that is made and is most like it: {near[0]!r}." if near else ""
        which = f" with occurrence = {occurrence[0]}" if occurrence else ""
        what = f"a change of {function}{which} that is not made: {after!r}"
        raise FixtureError(f"{folder / EQUIVALENT} lists {what}.{closest}")
    return found


def _key(mutant: Mutant) -> tuple[Any, ...]:
    """What an entry calls it by; without the last part, all that are told in the same lines."""
    return mutant.function, mutant.before, mutant.after, mutant.occurrence


def _with_reason(mutant: Mutant, reasons: Mapping[tuple[Any, ...], str]) -> Mutant:
    key = _key(mutant)
    return replace(mutant, reason=reasons.get(key, reasons.get(key[:-1], "")))


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
    by_text: dict[str, Mutant] = {}
    for family, slug, function, text in changes:
        if text != solution and text not in by_text:
            before, after = changed_lines(solution, text)
            line = first_difference(solution, text)
            by_text[text] = Mutant(family, slug, function, text, before, after, line=line)
    return _numbered(list(by_text.values()))


def _numbered(mutants: Sequence[Mutant]) -> list[Mutant]:
    """The same, in the same order, with the occurrence of each of those that are told in the same lines."""
    alike: dict[tuple[Any, ...], list[Mutant]] = {}
    for one in sorted(mutants, key=lambda mutant: mutant.line):
        alike.setdefault(_key(one), []).append(one)
    places = {id(one): k for several in alike.values() if several[1:] for k, one in enumerate(several, 1)}
    return [replace(one, occurrence=places.get(id(one), 0)) for one in mutants]


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


def equivalent_entry(mutant: Mutant) -> str:
    """The entry of equivalent_mutants.toml for a mutant, whose reason is still to be written."""
    family = f'family = "{mutant.name}"\n' if mutant.slug else ""
    lines = (f"{key} = {_toml(getattr(mutant, key))}\n" for key in ("before", "after"))
    which = f"occurrence = {mutant.occurrence}  # in line {mutant.line}\n" if mutant.occurrence else ""
    return f'[[equivalent]]\n{family}function = "{mutant.function}"\n{"".join(lines)}{which}reason = ""\n'


def _toml(lines: str) -> str:
    escaped = lines.replace("\\", "\\\\").replace('"', '\\"')
    if NEXT_LINE not in escaped:
        return f'"{escaped}"'
    several = lines.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace(NEXT_LINE, "\n")
    return f'"""\n{several}\n"""'


def _of_entry(text: str) -> str:
    """The lines of an entry as changes are told: they may stand below each other, with indentation and comments."""
    return _joined(re.split(r"\n|⏎", text))


def _joined(lines: Iterable[str]) -> str:
    stripped = (line.partition("  #")[0].strip() for line in lines)
    return NEXT_LINE.join(line for line in stripped if line)


def _reasons(path: Path) -> dict[tuple[Any, ...], str]:
    """(function, lines before, lines after, and occurrence where one is named) → why that change changes nothing."""
    if not path.is_file():
        return {}
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
        told = ((one["function"], _of_entry(one["before"]), _of_entry(one["after"])) for one in listed)
        which = ((one["occurrence"],) if "occurrence" in one else () for one in listed)
        return {(*key, *last): one["reason"] for key, last, one in zip(told, which, listed, strict=True)}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise FixtureError(f"{path} cannot be used: {error}.") from error

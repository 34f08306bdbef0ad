"""The changes that the exam makes of a solution by itself, as mistakes of a new assignment's catalogue."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.authoring.beginning.likely_mistakes import Candidate
from autograder.authoring.beginning.signatures import Function
from autograder.authoring.catalogue import Correct
from autograder.authoring.exam.mutants import Mutant, generated_mutants

HABITS = {
    "clamp": "Does the docstring keep any value within bounds?",
    "constant-in-logarithm": "Is anything added under the logarithm of the docstring?",
    "nan-to-num": "What should come out where a number is not finite?",
    "isclose-for-eq": "Are two numbers that are close the same number?",
    "one-pass-variance": "What becomes of the variance of numbers that are large and close together?",
    "another-ddof": "Is the spread one of all values there are, or one estimated from a sample?",
    "truncation": "Which numbers here may have a fraction?",
    "cast": "Of which dtype should the result be?",
    "dtype-dropped": "Of which dtype should the result be?",
    "in-place": "What do the caller's arguments hold after the call?",
    "not-cloned": "What do the caller's arguments hold after the call?",
    "reshape-for-permute": "Does a change of shape move numbers from one axis to another?",
    "axis-dropped": "What shape has each of the two operands?",
    "array-of-integers": "What becomes of a fraction that is put into an array of whole numbers?",
    "global-random-state": "Whose random numbers should be drawn?",
    "own-seed": "Whose random numbers should be drawn?",
    "size-written-in": "Does it hold for arrays of other sizes?",
    "mode-around-call": "In which mode should the model be called, and in which should it be left?",
    "detach-for-no-grad": "Which steps belong to the graph?",
    "detach-dropped": "Which steps belong to the graph?",
    "detached": "Which arguments should the result be differentiable in?",
    "calls-remembered": "May two calls with the same arguments answer differently?",
    "second-pass": "How often should that be called?",
    "another-optimizer": "Which optimizer does the docstring name?",
    "optimizer-anew": "How long should an optimizer live?",
    "learning-rate-schedule": "Does the learning rate change while the loop runs?",
    "gradients-clipped": "Does the docstring bound the gradients?",
    "gradients-cleared-late": "Which gradients are there when the first step is made?",
    "stopped-early": "When does the loop end?",
    "shallow-copy": "What does the copy share with what it is a copy of?",
}
PARAMETERS = {
    "names-changed": "Can a caller pass each argument by the name that the handout gives it?",
    "ignored": "What is {name} for? Try two different ones.",
    "default": "What is {name} where a call does not say it?",
    "above-0": "What if {name} is below 0?",
}


@dataclass(frozen=True)
class Variant:
    """A wrong text of one function.

    name        what clauses call it: a slug of the catalogue, `parameter:…` or `habit:…`
    text        the function, wrong
    arguments   those that it is about
    candidate   as an entry of the catalogue; None where it cannot be one
    """

    name: str
    text: str
    arguments: frozenset[str]
    candidate: Candidate | None


def variants(solution: str, function: Function) -> Iterator[Variant]:
    """Every changed parameter and every habit of the function; several may be of one name."""
    correct = Correct.from_solution(solution, function.name).source
    for mutant in generated_mutants(solution, [function.name]):
        text = Correct.from_solution(mutant.source, function.name).source
        candidate = _candidate(correct, text, mutant, function)
        yield Variant(mutant.name, text, frozenset(_arguments(mutant, function)), candidate)


def _arguments(mutant: Mutant, function: Function) -> Iterator[str]:
    for one in function.arguments:
        said = re.search(rf"\b{re.escape(one.name)}\b", mutant.after) is not None
        if mutant.slug.startswith(f"{one.name}-") if mutant.family == "parameter" else said:
            yield one.name


def _candidate(correct: str, wrong: str, mutant: Mutant, function: Function) -> Candidate | None:
    edit = _edit(correct, wrong)
    if edit is None or correct.count(edit[0]) != 1:
        return None
    slug = f"{function.slug}-{mutant.slug}".replace("_", "-").lower()
    if mutant.family == "habit":
        return Candidate(function.name, slug, HABITS[mutant.slug], *edit)
    name = next((one.name for one in function.arguments if mutant.slug.startswith(f"{one.name}-")), "")
    return Candidate(function.name, slug, PARAMETERS[mutant.slug.removeprefix(f"{name}-")].format(name=name), *edit)


def _edit(correct: str, wrong: str) -> tuple[str, str] | None:
    """The lines that differ, as a pair of right and wrong text; None where they stand apart."""
    one, other = correct.splitlines(), wrong.splitlines()
    codes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    changes = [code[1:] for code in codes if code[0] != "equal"]
    if len(changes) != 1:
        return None
    start, end, to, until = changes[0]
    if start == end:  # lines are added: with the one that follows
        end, until = end + 1, until + 1
    right, changed = "\n".join(one[start:end]).strip(), "\n".join(other[to:until]).strip()
    return (right, changed) if right and changed else None

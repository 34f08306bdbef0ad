"""Make fixtures: draft cases, the oracle's answers, the solution's agreement, what every mistake returns.

The build refuses to store what could not grade: an oracle and a solution that differ, a value that is not finite or too
small for its tolerance, an input that does not matter, a branch that no case takes, a mistake that no case separates.
The generator code of an assignment (cases.py, oracle.py, mistakes.py) is imported here; torch is not: the solution and
the mistakes run in the sandbox like any submission.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.declarations import (
    OPEN_SECRET,
    TOLERANCES,
    Draft,
    Refusal,
    Showing,
    check_drafts,
    error,
    fact,
    generator_for,
    gradient,
    unchanged,
    value,
)
from autograder.grading.cases import Case, Expectation, decode, encode, is_finite
from autograder.grading.compare import compare
from autograder.grading.fixtures import MANIFEST
from autograder.grading.items import Assignment, Item
from autograder.sandbox.calls import Outcome, Program
from autograder.sandbox.observation import Array, Observation, Raised, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import Visibility

# what cases.py needs
__all__ = [
    "OPEN_SECRET", "Draft", "Expectation", "Showing",
    "error", "fact", "generator_for", "gradient", "unchanged", "value",
]  # fmt: skip

AGREEMENT = 1e-12

# The build


@dataclass(frozen=True)
class Generator:
    """The generator code of an assignment, imported, and the sandbox that student code runs in."""

    assignment: Assignment
    oracle: ModuleType
    mistakes: Sequence[Any]
    draw: Callable[[str], Iterable[Draft]]
    curves: Callable[[], Iterable[Showing]]
    sandbox: Sandbox

    @classmethod
    def of(cls, assignment: Assignment, sandbox: Sandbox) -> Generator:
        """Import it."""
        modules = import_generator(assignment)
        drawing = _drawing(assignment, sandbox)
        cases = modules["cases"]
        curves = cases.curves if assignment.curves else tuple
        mistakes = modules["mistakes"].MISTAKES
        return cls(assignment, modules["oracle"], mistakes, lambda s: cases.drafts(s, drawing), curves, sandbox)

    def drafts(self, secret: str) -> dict[str, Draft]:
        """Every draft by its case, just those that items.toml lists."""
        return _drafts_by_case(self.assignment, self.draw(secret))

    def checked(self, drafts: Mapping[str, Draft]) -> list[Case]:
        """The cases of these drafts, held against the solution, with what every mistake returns."""
        listed = [entry for entry in listed_cases(self.assignment) if entry[1] in drafts]
        cases = [_case(item, drafts[name], visibility) for item, name, visibility in listed]
        check_solution(self.assignment, cases, drafts, self.sandbox)
        return with_mistakes(self.assignment, cases, self.mistakes, self.sandbox)

    def complete(self, secret: str) -> tuple[dict[str, Draft], list[Case]]:
        """A whole set that passed every check."""
        drafts = self.drafts(secret)
        check_drafts(self.assignment, drafts, self.oracle)
        cases = self.checked(drafts)
        check_mistakes(cases, self.mistakes)
        return drafts, cases

    def shown(self) -> list[Case]:
        """The cases of the curves, the same in every set."""
        return with_references(self.assignment, list(self.curves()), self.sandbox)

    @property
    def hints(self) -> dict[str, str]:
        """Mistake slug → its hint."""
        return {mistake.slug: mistake.hint for mistake in self.mistakes}


def regenerate(assignment: Assignment, target: Path, *, secret: str = OPEN_SECRET, sandbox: Sandbox) -> int:
    """Write public/, hidden/ and the manifest into `target`; the number of cases. Raises FixtureError on a refusal."""
    generator = Generator.of(assignment, sandbox)
    _, cases = generator.complete(secret)
    write_set(assignment, target, [*cases, *generator.shown()], generator.hints)
    return len(cases)


def import_generator(assignment: Assignment) -> dict[str, ModuleType]:
    """The assignment's own oracle, cases and mistakes, as modules of a package that no other assignment shares.

    They import each other relatively: `from . import oracle`, or `from .. import oracle` in a package of cases.
    """
    package = f"fixtures_of_{assignment.name}"
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]  # of another folder, or of other text
    importlib.invalidate_caches()
    folder = ModuleType(package)
    folder.__path__ = [str(assignment.folder)]
    sys.modules[package] = folder
    return {name: importlib.import_module(f"{package}.{name}") for name in ("oracle", "cases", "mistakes")}


def _drafts_by_case(assignment: Assignment, drafts: Iterable[Draft]) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    for draft in drafts:
        if draft.case in found:
            raise FixtureError(f"Two drafts are called {draft.case}.")
        found[draft.case] = draft
    listed = {name for _, name, _ in listed_cases(assignment)}
    if listed != set(found):
        missing, unused = sorted(listed - set(found)), sorted(set(found) - listed)
        raise FixtureError(f"items.toml and cases.py differ: without a draft {missing}; in no item {unused}.")
    return found


def listed_cases(assignment: Assignment) -> list[tuple[Item, str, Visibility]]:
    """Every case that an item lists, in the order of items.toml."""
    listed: list[tuple[Item, str, Visibility]] = []
    for item in assignment.items:
        listed += [(item, name, "public") for name in item.public]
        listed += [(item, name, "hidden") for name in item.hidden]
    return listed


def _case(item: Item, draft: Draft, visibility: Visibility) -> Case:
    expected = tuple(draft.answer(draft.inputs, draft.params))
    call = (draft.probe, draft.params, draft.inputs)
    return Case(draft.case, item.id, item.function, draft.title, visibility, *call, expected, {})


# Refusals that need the solution and the mistakes


def program_of(assignment: Assignment, source: str) -> Program:
    """What a worker loads to run `source` as a submission."""
    return Program(assignment.module, source, assignment.given_sources(), assignment.probes_source())


def observe(assignment: Assignment, source: str, cases: Sequence[Case], sandbox: Sandbox) -> list[Outcome]:
    """What `source`, as a submission, does in each case."""
    items = {item.id: item for item in (*assignment.items, *assignment.curves)}
    requests = [case.request(items[case.item]) for case in cases]
    return sandbox.run(program_of(assignment, source), requests, load_timeout=assignment.load_timeout)


def solution_source(assignment: Assignment) -> str:
    """The text of the solution's module."""
    return (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")


def check_solution(
    assignment: Assignment, cases: Sequence[Case], drafts: Mapping[str, Draft], sandbox: Sandbox
) -> None:
    """Refuse where solution and oracle differ: as graded, and within 1e-12 in float64."""
    source = solution_source(assignment)
    for case, outcome in zip(cases, observe(assignment, source, cases, sandbox), strict=True):
        mismatch = None if outcome.observation is None else compare(case.expected, outcome.observation)
        if outcome.observation is None or mismatch is not None:
            seen = outcome.raised or outcome.detail or outcome.status if mismatch is None else _brief(mismatch)
            raise Refusal(f"{case.id}: the solution does not pass its own case: {seen}.", case.id)
        _check_diagnoses(case, outcome.observation)
    twins = [_in_float64(case, drafts[case.id]) for case in cases]
    for case, outcome in zip(twins, observe(assignment, source, twins, sandbox), strict=True):
        if outcome.observation is None:
            raise FixtureError(f"{case.id}: the solution fails in float64: {outcome.raised or outcome.detail}.")
        for expectation in case.expected:
            _check_agreement(case.id, expectation, outcome.observation.returned.get(expectation.name))


def _brief(mismatch: Any) -> str:
    return f"{mismatch.rung} of {mismatch.expectation.name}, {mismatch.first or mismatch.returned or mismatch.observed}"


def _check_diagnoses(case: Case, seen: Observation) -> None:
    for expectation in case.expected:
        if expectation.diagnosis and seen.facts.get(expectation.name) != expectation.value:
            raise FixtureError(
                f"{case.id}: the solution's trace says {seen.facts.get(expectation.name)!r} for {expectation.name!r}, "
                f"but the case expects {expectation.value!r}."
            )


def _in_float64(case: Case, draft: Draft) -> Case:
    inputs = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in case.inputs.items()
    }
    return replace(case, inputs=inputs, expected=tuple(draft.answer(inputs, case.params)))


def _check_agreement(case: str, expectation: Expectation, returned: Returned | None) -> None:
    if expectation.kind not in ("value", "gradient") or expectation.array is None:
        return
    if returned is None or returned.array is None or returned.array.shape != expectation.array.shape:
        raise FixtureError(f"{case}: the solution returns no {expectation.name} in float64.")
    scale = max(1.0, float(np.abs(expectation.array).max(initial=0.0)))
    distance = float(np.abs(returned.array.astype(np.float64) - expectation.array).max(initial=0.0))
    if not distance <= AGREEMENT * scale:
        raise Refusal(
            f"{case}: oracle and solution differ by {distance:.3g} in {expectation.name} "
            f"(allowed: {AGREEMENT * scale:.3g}).",
            case,
        )


def with_mistakes(
    assignment: Assignment, cases: Sequence[Case], mistakes: Sequence[Any], sandbox: Sandbox
) -> list[Case]:
    """The cases, each with what every mistake of its function returns where that is not right."""
    seen: dict[str, dict[str, Observation | Raised]] = {case.id: {} for case in cases}
    for mistake in mistakes:
        concerned = [case for case in cases if case.function == mistake.function]
        if not concerned:
            continue
        source = f"{solution_source(assignment)}\n\n{mistake.source}"
        for case, outcome in zip(concerned, observe(assignment, source, concerned, sandbox), strict=True):
            difference = _difference(case, outcome)
            if difference is not None:
                seen[case.id][mistake.slug] = difference
            elif outcome.observation is None and outcome.raised is None:
                raise FixtureError(f"{mistake.slug} ends the worker in {case.id}: {outcome.status} {outcome.detail}.")
    return [replace(case, mistakes=seen[case.id]) for case in cases]


def _difference(case: Case, outcome: Outcome) -> Observation | Raised | None:
    """What of an outcome is not right: the exception, or only those returns and facts that differ."""
    if outcome.raised is not None:
        return replace(outcome.raised, message="", line=None, code="")
    seen = outcome.observation
    if seen is None or compare(case.expected, seen) is None:
        return None
    wrong = [e for e in case.expected if compare([replace(e, diagnosis=False)], seen) is not None]
    tensors = [e.name for e in wrong if e.kind not in ("fact", "error")]
    facts = {e.name: seen.facts.get(e.name) for e in wrong if e.kind in ("fact", "error")}
    return Observation({name: seen.returned.get(name, Returned("none")) for name in tensors}, facts)


def check_mistakes(cases: Sequence[Case], mistakes: Sequence[Any]) -> None:
    """Refuse a mistake that no case separates from the truth."""
    unseparated = [mistake.slug for mistake in mistakes if not any(mistake.slug in case.mistakes for case in cases)]
    if unseparated:
        raise FixtureError(f"No case separates these mistakes from a right answer: {', '.join(unseparated)}.")


def with_references(assignment: Assignment, showings: Sequence[Showing], sandbox: Sandbox) -> list[Case]:
    """The cases of the curves: each expects the solution's own series, which are shown and never judged."""
    drafts = {one.case: one for one in showings}
    if drafts.keys() != {curve.id for curve in assignment.curves}:
        raise FixtureError("The curves of items.toml and cases.py differ.")
    calls = [(curve, drafts[curve.id]) for curve in assignment.curves]
    cases = [
        Case(one.case, curve.id, curve.function, curve.title, "public", one.probe, one.params, one.inputs, (), {})
        for curve, one in calls
    ]
    outcomes = observe(assignment, solution_source(assignment), cases, sandbox)
    return [
        replace(case, expected=tuple(_reference(case.id, name, what, outcome) for name, what in one.series.items()))
        for case, (_, one), outcome in zip(cases, calls, outcomes, strict=True)
    ]


def _reference(case: str, name: str, what: str, outcome: Outcome) -> Expectation:
    """One series of the solution, to three decimals: processors may differ in those that follow."""
    seen = None if outcome.observation is None else outcome.observation.returned.get(name)
    if seen is None or seen.array is None or not is_finite(seen.array):
        raise FixtureError(f"{case}: the solution has no series {name}: {outcome.raised or outcome.detail}.")
    return value(name, what, np.round(seen.array.astype(np.float64), 3), "step", "float64")


def _drawing(assignment: Assignment, sandbox: Sandbox) -> Callable[..., Mapping[str, Array]]:
    """A function that runs a probe without student code: for what only torch's own generator can say."""

    def drawn(probe: str, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Array]:
        item = assignment.items[0]
        blank = f"def {item.function}(): ...\n"
        case = Case("draw", item.id, item.function, "", "public", probe, params, inputs, (), {})
        outcome = observe(assignment, blank, [case], sandbox)[0]
        if outcome.observation is None:
            raise FixtureError(f"The probe {probe} failed without student code: {outcome.raised or outcome.detail}.")
        return {n: r.array for n, r in outcome.observation.returned.items() if r.array is not None}

    return drawn


# Writing


def write_set(
    assignment: Assignment,
    target: Path,
    cases: Sequence[Case],
    hints: Mapping[str, str],
    term: Mapping[str, Any] | None = None,
) -> None:
    """Write a set of fixtures in place of any that is there; `term` says how it was drawn, where it was."""
    files: dict[str, bytes] = {}
    for item in (*assignment.items, *assignment.curves):
        for visibility in ("public", "hidden"):
            chosen = [case for case in cases if case.item == item.id and case.visibility == visibility]
            if chosen:
                name = f"{visibility}/{item.id}.safetensors"
                files[name] = encode(chosen)
                _check_round_trip(chosen, decode(files[name], target / name))
    for visibility in ("public", "hidden"):
        shutil.rmtree(target / visibility, ignore_errors=True)
    for name, data in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    for name in ("items.toml", "probes.py"):
        files[name] = (assignment.folder / name).read_bytes()
        if target.resolve() != assignment.folder:
            (target / name).write_bytes(files[name])
    (target / MANIFEST).write_text(manifest_text(assignment, files, hints, term), encoding="utf-8")


def _check_round_trip(before: Sequence[Case], after: Sequence[Case]) -> None:
    for wrote, read in zip(before, after, strict=True):
        for one, other in zip(wrote.expected, read.expected, strict=True):
            if one != other or not _same_array(one.array, other.array):
                raise FixtureError(f"{wrote.id}: what was stored of {one.name} is not what is read back.")


def _same_array(one: Array | None, other: Array | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other, equal_nan=True)


def manifest_text(
    assignment: Assignment, files: Mapping[str, bytes], hints: Mapping[str, str], term: Mapping[str, Any] | None = None
) -> str:
    """The manifest of these files."""
    manifest = {
        "schema": 1,
        "assignment": assignment.name,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        "given": {
            name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(assignment.given_sources().items())
        },
        "hints": dict(sorted(hints.items())),
        "seed": "each case draws from SHA-256 of the secret and its own name; the open secret stands in build.py",
        "tolerances": {name: {"relative": r, "absolute": a} for name, (r, a) in TOLERANCES.items()},
        "versions": versions(),
        **({"term": dict(term)} if term else {}),
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"


def versions() -> dict[str, str]:
    """Versions of what the numbers come from. A build's tag (`+cpu`, `+cu130`) is no version."""
    from importlib.metadata import version

    names = ("torch", "numpy", "safetensors", "einops")
    found = {name: version(name).partition("+")[0] for name in names}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **found}

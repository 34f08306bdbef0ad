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

from autograder.calls import Outcome, Program
from autograder.compare import compare
from autograder.errors import FixtureError
from autograder.fixtures import MANIFEST, Case, Expectation, decode, encode, is_finite
from autograder.items import Assignment, Item
from autograder.observation import Array, Observation, Raised, Returned
from autograder.report import Visibility
from autograder.sandbox import Sandbox

AGREEMENT = 1e-12
OPEN_SECRET = "open fixtures: a course that publishes its repository draws its own"
TOLERANCES = {"float64": (1e-6, 1e-8), "float32": (1e-4, 1e-6), "int64": (0.0, 0.0)}
Answer = Callable[[Mapping[str, Array], Mapping[str, Any]], Sequence[Expectation]]


@dataclass(frozen=True)
class Draft:
    """A case before it is stored.

    answer   the oracle: expectations from inputs and parameters
    free     inputs and parameters that need not matter here
    square   axes that may have equal sizes here, and why; "" where all must differ
    """

    case: str
    title: str
    probe: str
    inputs: Mapping[str, Array]
    answer: Answer
    params: Mapping[str, Any]
    free: tuple[str, ...] = ()
    square: str = ""


# Expectations, as cases.py writes them


def value(name: str, what: str, array: Array, axes: str, dtype: str, **more: Any) -> Expectation:
    """A returned tensor. `axes` are names separated by spaces."""
    return _tensor("value", name, what, array, axes, dtype, more)


def gradient(name: str, what: str, array: Array, axes: str, dtype: str, **more: Any) -> Expectation:
    """A gradient."""
    return _tensor("gradient", name, what, array, axes, dtype, more)


def unchanged(name: str, array: Array, what: str = "") -> Expectation:
    """An argument that must come out as it went in."""
    return Expectation("unchanged", name, what or name, dtype=array.dtype.name, array=array)


def fact(name: str, what: str, expected: Any, message: str, *, diagnosis: bool = False) -> Expectation:
    """A JSON value; `message` may hold {expected} and {observed}."""
    return Expectation("fact", name, what, value=expected, message=message, diagnosis=diagnosis)


def error(name: str, what: str, kind: str, *mentions: str) -> Expectation:
    """An exception of type `kind` whose text mentions each of `mentions`."""
    return Expectation("error", name, what, value={"type": kind, "mentions": list(mentions)})


def _tensor(
    kind: Any, name: str, what: str, array: Array, axes: str, dtype: str, more: Mapping[str, Any]
) -> Expectation:
    rtol, atol = TOLERANCES[dtype]
    stored = np.asarray(array, dtype=np.int64 if dtype == "int64" else np.float64)
    scale = max(1.0, float(np.abs(stored).max(initial=0.0)))
    settings = {"rtol": rtol, "atol": atol * scale, **more}
    return Expectation(kind, name, what, tuple(axes.split()), dtype, array=stored, **settings)


def generator_for(secret: str, case: str) -> np.random.Generator:
    """The random numbers of one case: its own, so that adding a case changes no other."""
    digest = hashlib.sha256(f"{secret}\n{case}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@dataclass(frozen=True)
class Showing:
    """A run to show: it earns nothing, and its reference is what the solution makes of it.

    case     the id of a [[curve]] in items.toml
    series   what each series that the probe returns is called
    """

    case: str
    probe: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    series: Mapping[str, str]


# The build


def regenerate(assignment: Assignment, target: Path, *, secret: str = OPEN_SECRET, sandbox: Sandbox) -> int:
    """Write public/, hidden/ and the manifest into `target`; the number of cases. Raises FixtureError on a refusal."""
    generator = import_generator(assignment)
    drafts = _drafts_by_case(assignment, generator["cases"].drafts(secret, _drawing(assignment, sandbox)))
    cases = [_case(item, drafts[name], visibility) for item, name, visibility in _listed(assignment)]
    check_drafts(assignment, drafts, generator["oracle"])
    check_solution(assignment, cases, drafts, sandbox)
    mistakes = generator["mistakes"].MISTAKES
    cases = with_mistakes(assignment, cases, mistakes, sandbox)
    check_mistakes(assignment, cases, mistakes)
    shown = with_references(assignment, list(generator["cases"].curves()) if assignment.curves else [], sandbox)
    _write(assignment, target, [*cases, *shown], {mistake.slug: mistake.hint for mistake in mistakes})
    return len(cases)


def import_generator(assignment: Assignment) -> dict[str, ModuleType]:
    """The assignment's own oracle, cases and mistakes: another's modules of these names are set aside meanwhile."""
    folder = str(assignment.folder)
    own = {path.stem for path in assignment.folder.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in own if name in sys.modules}
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        return {name: importlib.import_module(name) for name in ("oracle", "cases", "mistakes")}
    finally:
        sys.path.remove(folder)
        for name in own:
            sys.modules.pop(name, None)
        sys.modules.update(others)


def _drafts_by_case(assignment: Assignment, drafts: Iterable[Draft]) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    for draft in drafts:
        if draft.case in found:
            raise FixtureError(f"Two drafts are called {draft.case}.")
        found[draft.case] = draft
    listed = {name for _, name, _ in _listed(assignment)}
    if listed != set(found):
        missing, unused = sorted(listed - set(found)), sorted(set(found) - listed)
        raise FixtureError(f"items.toml and cases.py differ: without a draft {missing}; in no item {unused}.")
    return found


def _listed(assignment: Assignment) -> list[tuple[Item, str, Visibility]]:
    listed: list[tuple[Item, str, Visibility]] = []
    for item in assignment.items:
        listed += [(item, name, "public") for name in item.public]
        listed += [(item, name, "hidden") for name in item.hidden]
    return listed


def _case(item: Item, draft: Draft, visibility: Visibility) -> Case:
    expected = tuple(draft.answer(draft.inputs, draft.params))
    call = (draft.probe, draft.params, draft.inputs)
    return Case(draft.case, item.id, item.function, draft.title, visibility, *call, expected, {})


# Refusals that need no student code


def check_drafts(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse drafts that could not grade; raises FixtureError naming case and cause."""
    for draft in drafts.values():
        expected = draft.answer(draft.inputs, draft.params)
        for expectation in expected:
            _check_stored_value(draft, expectation)
        _check_sizes(draft, expected)
        for name in _variable(draft):
            if name not in draft.free and not _matters(draft, name, expected):
                raise FixtureError(f"{draft.case}: {name} does not matter; a wrong use of it would pass.")
    for item in assignment.items:
        oracle.TAKEN.clear()
        for name in (*item.public, *item.hidden):
            drafts[name].answer(drafts[name].inputs, drafts[name].params)
        untaken = oracle.BRANCHES.get(item.id, set()) - oracle.TAKEN
        if untaken:
            raise FixtureError(f"{item.id}: no case takes the branch {sorted(untaken)}.")


def _check_stored_value(draft: Draft, expectation: Expectation) -> None:
    if expectation.kind not in ("value", "gradient") or expectation.array is None:
        return
    if not is_finite(expectation.array):
        raise FixtureError(f"{draft.case}: the expected {expectation.name} is not finite.")
    if expectation.dtype != "int64" and np.abs(expectation.array).max(initial=0.0) < 10 * expectation.atol:
        raise FixtureError(f"{draft.case}: the expected {expectation.name} is too small for its tolerance.")


def _check_sizes(draft: Draft, expected: Sequence[Expectation]) -> None:
    for expectation in expected:
        shape = () if expectation.array is None else expectation.array.shape
        if expectation.kind == "value" and len(expectation.axes) != len(shape):
            raise FixtureError(f"{draft.case}: {expectation.name} has axes {expectation.axes} and shape {shape}.")
        if expectation.kind == "value" and len(set(shape)) < len(shape) and not draft.square:
            raise FixtureError(f"{draft.case}: {expectation.name} has equal axis lengths {shape} and does not say why.")


def _variable(draft: Draft) -> list[str]:
    settings = draft.params.get("settings", {})
    floats = [f"settings.{name}" for name, setting in settings.items() if isinstance(setting, float) and setting]
    return [*draft.inputs, *(name for name, entry in draft.params.items() if isinstance(entry, float)), *floats]


def _matters(draft: Draft, name: str, expected: Sequence[Expectation]) -> bool:
    """Whether a change of one input or parameter moves an expected value well beyond its tolerance."""
    return any(_moves(draft, inputs, params, expected) for inputs, params in _variations(draft, name))


def _variations(draft: Draft, name: str) -> list[tuple[dict[str, Array], dict[str, Any]]]:
    inputs, params = dict(draft.inputs), dict(draft.params)
    if name in inputs:
        return [({**inputs, name: changed}, params) for changed in _perturbed(inputs[name])]
    if name.startswith("settings."):
        key = name.removeprefix("settings.")
        return [(inputs, {**params, "settings": {**params["settings"], key: params["settings"][key] * 1.5}})]
    return [(inputs, {**params, name: params[name] * 1.5})]


def _moves(
    draft: Draft, inputs: Mapping[str, Array], params: Mapping[str, Any], expected: Sequence[Expectation]
) -> bool:
    try:
        changed = draft.answer(inputs, params)
    except (IndexError, KeyError, ValueError):
        return True
    return any(_moved(before, after) for before, after in zip(expected, changed, strict=True))


def _perturbed(array: Array) -> list[Array]:
    if array.dtype.kind == "f":
        # not one constant shift: centred deltas would not feel it
        return [array + np.linspace(0.1, 0.4, array.size, dtype=array.dtype).reshape(array.shape)]
    return [np.roll(array.reshape(-1), 1).reshape(array.shape), (array + 1) % (array.max() + 1), array + 1]


def _moved(before: Expectation, after: Expectation) -> bool:
    if before.kind not in ("value", "gradient") or before.array is None or after.array is None:
        return before.kind in ("error", "fact") and before.value != after.value
    if before.array.shape != after.array.shape:
        return True
    return bool((np.abs(before.array - after.array) > 10 * (before.atol + before.rtol * np.abs(before.array))).any())


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
            raise FixtureError(f"{case.id}: the solution does not pass its own case: {seen}.")
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
        raise FixtureError(
            f"{case}: oracle and solution differ by {distance:.3g} in {expectation.name} "
            f"(allowed: {AGREEMENT * scale:.3g})."
        )


def with_mistakes(
    assignment: Assignment, cases: Sequence[Case], mistakes: Sequence[Any], sandbox: Sandbox
) -> list[Case]:
    """The cases, each with what every mistake of its function returns where that is not right."""
    seen: dict[str, dict[str, Observation | Raised]] = {case.id: {} for case in cases}
    for mistake in mistakes:
        concerned = [case for case in cases if case.function == mistake.function]
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


def check_mistakes(assignment: Assignment, cases: Sequence[Case], mistakes: Sequence[Any]) -> None:
    """Refuse a mistake that no case separates from the truth."""
    unseparated = [
        mistake.slug for mistake in mistakes if not any(mistake.slug in case.mistakes for case in cases)
    ]
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


def _write(assignment: Assignment, target: Path, cases: Sequence[Case], hints: Mapping[str, str]) -> None:
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
    (target / MANIFEST).write_text(manifest_text(assignment, files, hints), encoding="utf-8")


def _check_round_trip(before: Sequence[Case], after: Sequence[Case]) -> None:
    for wrote, read in zip(before, after, strict=True):
        for one, other in zip(wrote.expected, read.expected, strict=True):
            if one != other or not _same_array(one.array, other.array):
                raise FixtureError(f"{wrote.id}: what was stored of {one.name} is not what is read back.")


def _same_array(one: Array | None, other: Array | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other, equal_nan=True)


def manifest_text(assignment: Assignment, files: Mapping[str, bytes], hints: Mapping[str, str]) -> str:
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
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"


def versions() -> dict[str, str]:
    """Versions of what the numbers come from."""
    from importlib.metadata import version

    names = ("torch", "numpy", "safetensors", "einops")
    return {"python": ".".join(platform.python_version_tuple()[:2]), **{name: version(name) for name in names}}

"""Two sets of fixtures → sentences: what changed between them, and whose score would change with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autograder.grading.cases import MANIFEST, Case, Expectation, Fixtures, read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, Item, load_assignment
from autograder.sandbox.observation import Array
from autograder.sandbox.pool import in_sandboxes
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number, visible

MAX_NAMED = 6


@dataclass(frozen=True)
class FixtureSet:
    """A stored set, with the items and the probes that it was made for.

    term    the name of the term that its hidden cases were drawn for; "" for the open set
    """

    folder: Path
    term: str
    assignment: Assignment
    fixtures: Fixtures
    grader: Grader


def read_set(assignment: Assignment, folder: Path) -> FixtureSet:
    """The set in `folder`; raises UsageError where there is none, FixtureError where one is broken."""
    if not (folder / MANIFEST).is_file() or not (folder / "items.toml").is_file():
        raise UsageError(f"{folder} holds no set of fixtures: it lacks {MANIFEST} or items.toml.")
    own = load_assignment(folder)
    fixtures = read_fixtures(own)
    described = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("term", {})
    grader = Grader(own, fixtures, assignment.given_sources(), own.probes_source())
    return FixtureSet(folder, described.get("name", ""), own, fixtures, grader)


# What changed


def difference_text(before: FixtureSet, after: FixtureSet) -> str:
    """What changed from one set to the other, in words."""
    lines = [_about(name, one) for name, one in (("A", before), ("B", after))]
    sections = (
        ("Items", list(_item_changes(before.assignment, after.assignment))),
        ("Cases", list(_case_changes(before.fixtures.cases, after.fixtures.cases))),
        ("Hints", list(_hint_changes(before.fixtures.hints, after.fixtures.hints))),
    )
    for title, changes in sections:
        lines += [f"{title}: the same."] if not changes else [f"{title}:", *(f"  {change}" for change in changes)]
    return "\n".join(lines) + "\n"


def _about(name: str, one: FixtureSet) -> str:
    whose = f"term {one.term}" if one.term else "the open set"
    points = number(one.assignment.max_points)
    return f"{name}  {one.folder}: {whose}, {len(one.fixtures.cases)} cases, {points} points"


def _item_changes(before: Assignment, after: Assignment) -> Iterator[str]:
    old, new = ({item.id: item for item in one.items} for one in (before, after))
    for name in {**old, **new}:
        if name not in new:
            yield f"{name} is gone, and {number(old[name].points)} points with it"
        elif name not in old:
            yield f"{name} is new, for {number(new[name].points)} points"
        elif changes := list(_in_item(old[name], new[name])):
            yield f"{name}: {'; '.join(changes)}"


def _in_item(old: Item, new: Item) -> Iterator[str]:
    if old.points != new.points:
        yield f"{number(old.points)} points become {number(new.points)}"
    if old.timeout != new.timeout:
        yield f"{number(old.timeout)} s for a case become {number(new.timeout)}"
    for what in ("function", "title", "hint"):
        if getattr(old, what) != getattr(new, what):
            yield f"{what} {getattr(old, what)!r} becomes {getattr(new, what)!r}"


def _case_changes(before: Sequence[Case], after: Sequence[Case]) -> Iterator[str]:
    old, new = ({case.id: case for case in cases} for cases in (before, after))
    alike: dict[str, list[str]] = {}
    for name in {**old, **new}:
        if name not in new:
            yield f"{name} ({old[name].visibility}, {old[name].item}) is gone"
        elif name not in old:
            yield f"{name} ({new[name].visibility}, {new[name].item}) is new"
        elif changes := list(_in_case(old[name], new[name])):
            alike.setdefault("; ".join(changes), []).append(name)
    for change, names in alike.items():
        yield f"{_some(names)}: {change}"


def _in_case(old: Case, new: Case) -> Iterator[str]:
    for what in ("item", "visibility", "title", "probe"):
        if getattr(old, what) != getattr(new, what):
            yield f"{what} {getattr(old, what)!r} becomes {getattr(new, what)!r}"
    if old.params != new.params:
        yield "other parameters"
    given, expected = not _same_arrays(old.inputs, new.inputs), not _same_values(old, new)
    if given or expected:
        both = ("inputs", "expected values")
        yield f"other {' and '.join(what for what, changed in zip(both, (given, expected), strict=True) if changed)}"
    yield from _tolerance_changes(old, new)
    for verb, slugs in (
        ("no longer separates", sorted(set(old.mistakes) - set(new.mistakes))),
        ("now separates", sorted(set(new.mistakes) - set(old.mistakes))),
    ):
        if slugs:
            yield f"{verb} {', '.join(slugs)}"


def _same_arrays(old: Mapping[str, Array], new: Mapping[str, Array]) -> bool:
    return old.keys() == new.keys() and all(_same(array, new[name]) for name, array in old.items())


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _same_values(old: Case, new: Case) -> bool:
    def values(case: Case) -> list[tuple[Any, ...]]:
        return [(one.kind, one.name, one.axes, one.dtype, one.attached, one.value) for one in case.expected]

    arrays = zip(old.expected, new.expected, strict=False)
    return values(old) == values(new) and all(_same(one.array, other.array) for one, other in arrays)


def _tolerance_changes(old: Case, new: Case) -> Iterator[str]:
    """Allowances that were chosen otherwise: an absolute one that follows the size of the values may move with them."""
    known = {one.name: one for one in new.expected}
    for one in old.expected:
        other = known.get(one.name)
        if other is None or (one.rtol == other.rtol and (one.atol == other.atol or _scaled(one) == _scaled(other))):
            continue
        yield (
            f"{one.what} may differ by {other.rtol:g} relative and {other.atol:g} absolute "
            f"(before: {one.rtol:g} and {one.atol:g})"
        )


def _scaled(one: Expectation) -> float:
    """The absolute allowance for values of size 1."""
    largest = 1.0 if one.array is None or one.kind not in ("value", "gradient") else float(np.abs(one.array).max())
    return float(f"{one.atol / max(1.0, largest):.6g}")


def _hint_changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for slug in sorted({**old, **new}):
        if slug not in new:
            yield f"{slug} is gone"
        elif slug not in old:
            yield f"{slug} is new: {new[slug]}"
        elif old[slug] != new[slug]:
            yield f"{slug}: {old[slug]!r} becomes {new[slug]!r}"


def _some(names: Sequence[str]) -> str:
    if len(names) <= MAX_NAMED:
        return ", ".join(names)
    return f"{len(names)} cases ({', '.join(names[:3])} … {names[-1]})"


# Whose score would change


def sample_differences(before: FixtureSet, after: FixtureSet, paths: Sequence[Path], *, jobs: int = 1) -> str:
    """The submissions at `paths` whose points differ between the two sets, item by item."""
    candidates = find(paths, after.assignment.module)

    def grade(candidate: Candidate, sandbox: Sandbox) -> tuple[Report, Report]:
        submission = read(candidate, after.assignment.module)
        return before.grader.grade(submission, sandbox), after.grader.grade(submission, sandbox)

    pairs = in_sandboxes(grade, candidates, jobs)
    changed = [line for old, new in pairs if (line := _score_change(old, new))]
    many = f"{len(pairs)} submission{'s' * (len(pairs) != 1)} graded against both"
    if not changed:
        return f"{many}: no score would change.\n"
    return "\n".join([f"{many}; {len(changed)} would score otherwise:", *changed]) + "\n"


def _score_change(old: Report, new: Report) -> str:
    before, after = ({item.item: item.points for item in one.items} for one in (old, new))
    if before == after:
        return ""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    items = ", ".join(f"{name} {_points(before.get(name))} → {_points(after.get(name))}" for name in names)
    return f"  {visible(old.student, 40)}  {_points(old.points)} → {_points(new.points)}: {items}"


def _points(points: float | None) -> str:
    return "none" if points is None else number(points)

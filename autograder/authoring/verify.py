"""Whether stored fixtures are what their generator makes: hashes, then a regeneration compared byte for byte.

Another version of torch, or another CPU, may round otherwise. Where bytes differ but cases, inputs and shapes do not,
what counts is how far the values moved, as a share of what a student's answer may differ by.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autograder.authoring.declarations import OPEN_SECRET
from autograder.authoring.generator import regenerate, versions
from autograder.authoring.terms import Made, Term, regenerate_term
from autograder.authoring.variants import OWN
from autograder.grading.cases import Case, Expectation, decode
from autograder.grading.fixtures import MANIFEST, read_fixtures
from autograder.grading.items import Assignment, load_assignment
from autograder.sandbox.apart import apart
from autograder.sandbox.observation import Array, Observation
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

ENOUGH = 0.5  # of the allowance: a right answer, which moves along, still has room


@dataclass(frozen=True)
class Movement:
    """How far the numbers of one file moved between two builds; infinite where more than numbers changed.

    share       the greatest change of an expected value, as a share of what is allowed there
    where       the case and the value it belongs to
    mistakes    the same for what known mistakes return
    otherwise   mistakes that do something else: raise, or return what they did not
    """

    share: float
    where: str
    mistakes: float
    otherwise: tuple[str, ...] = ()

    @property
    def keeps_verdicts(self) -> bool:
        """Whether no verdict depends on it."""
        return self.share <= ENOUGH

    @property
    def harmless(self) -> bool:
        """Whether no verdict depends on it, and no mistake loses its name."""
        return self.keeps_verdicts and self.mistakes <= 1 and not self.otherwise


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    files        how many stored files were compared
    different    those that a regeneration makes otherwise, or makes no more, or makes anew
    versions     package → (at generation, here) where the two differ
    moved        how far, for each of the different files that is there in both and holds cases
    told         manifests that say something else of more than versions and bytes
    """

    files: int
    different: tuple[str, ...]
    versions: dict[str, tuple[str, str]]
    moved: Mapping[str, Movement]
    told: tuple[str, ...]

    @property
    def harmless(self) -> bool:
        """Whether all that differs is rounding, and the versions it comes from."""
        numbers = [name for name in self.different if not name.endswith(MANIFEST)]
        return not self.told and all(name in self.moved and self.moved[name].harmless for name in numbers)


def regenerate_into(folder: Path, target: Path, secret: str = OPEN_SECRET) -> int:
    """Make the fixtures of the assignment in `folder` into `target`, in a process of its own; the number of cases."""
    target.mkdir(parents=True, exist_ok=True)
    return apart(_regenerate, folder, target, secret)


def regenerate_term_into(folder: Path, target: Path, term: Term, variants: int = 0) -> Made:
    """Make a term's fixtures into `target`, in a process of its own."""
    target.mkdir(parents=True, exist_ok=True)
    return apart(_regenerate_term, folder, target, term, variants)


def _regenerate(folder: Path, target: Path, secret: str) -> int:
    with Sandbox() as sandbox:
        return regenerate(load_assignment(folder), target, secret=secret, sandbox=sandbox)


def _regenerate_term(folder: Path, target: Path, term: Term, variants: int) -> Made:
    with Sandbox() as sandbox:
        return regenerate_term(load_assignment(folder), target, term, variants, sandbox)


def verify(assignment: Assignment, folder: Path | None = None, secret: bytes = b"") -> Verification:
    """Check every hash, make all fixtures anew, compare; `folder` may hold a term's set, whose `secret` it takes.

    Raises FixtureError where a file is not what was stored, UsageError where the secret is missing or another.
    """
    folder = folder or assignment.folder
    read_fixtures(assignment, folder=folder)
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        target = Path(name)
        _make_again(assignment, manifest.get("term"), secret, target)
        stored, made = _stored(folder), _stored(target)
        different = sorted(path for path in stored.keys() | made.keys() if stored.get(path) != made.get(path))
    moved = {
        path: movement(decode(stored[path], folder / path), decode(made[path], folder / path))
        for path in different
        if path.endswith(".safetensors") and path in stored and path in made
    }
    manifests = [name for name in different if name.endswith(MANIFEST)]
    told = tuple(name for name in manifests if _told(stored.get(name)) != _told(made.get(name)))
    then, here = manifest.get("versions", {}), versions()
    changed = {name: (then.get(name, "none"), version) for name, version in here.items() if then.get(name) != version}
    return Verification(len(stored), tuple(different), changed, moved, told)


def _told(manifest: bytes | None) -> Any:
    """What a manifest says beyond versions and bytes."""
    if manifest is None:
        return None
    told = json.loads(manifest)
    return {**told, "versions": None, "files": sorted(told["files"])}


def _make_again(assignment: Assignment, described: Mapping[str, Any] | None, secret: bytes, target: Path) -> None:
    if described is None:
        regenerate_into(assignment.folder, target)
        return
    term = Term(described["name"], secret)
    if not secret:
        raise UsageError(f"These are the fixtures of {term.name}: give --secret-file, the secret they were drawn from.")
    if term.commitment(assignment.name) != described["commitment"]:
        raise UsageError(f"This is not the secret that the fixtures of {term.name} were drawn from.")
    regenerate_term_into(assignment.folder, target, term, described.get("variants", {}).get("count", 0))


def _stored(folder: Path) -> dict[str, bytes]:
    sets = [folder, *sorted((folder / OWN).glob("*/"))]
    paths = [path for one in sets for path in (*one.glob("public/*"), *one.glob("hidden/*"), one / MANIFEST)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}


# How far values moved


def movement(before: list[Case], after: list[Case]) -> Movement:
    """How far the numbers moved from one set of cases to another."""
    if list(map(_bones, before)) != list(map(_bones, after)):
        return Movement(np.inf, "", np.inf)
    pairs = list(zip(before, after, strict=True))
    shares = [(share, f"{case.id}: {name}") for case, other in pairs for name, share in _shares(case, other)]
    greatest, where = max(shares, default=(0.0, ""))
    wrong = [found for case, other in pairs for found in _mistake_shares(case, other)]
    otherwise = sorted({slug for slug, share in wrong if share == np.inf})
    return Movement(
        greatest, where, max((share for _, share in wrong if share < np.inf), default=0.0), tuple(otherwise)
    )


def _bones(case: Case) -> Any:
    """A case without the numbers that may move: what else differs is no rounding."""
    inputs = {name: (array.dtype.name, array.shape, array.tobytes()) for name, array in case.inputs.items()}
    expected = [(replace(one, array=None, atol=0.0), _shape(one.array)) for one in case.expected]
    return (replace(case, inputs={}, expected=(), mistakes={}), inputs, expected)


def _shape(array: Array | None) -> tuple[int, ...] | None:
    return None if array is None else array.shape


def _shares(case: Case, other: Case) -> Iterator[tuple[str, float]]:
    for one, again in zip(case.expected, other.expected, strict=True):
        if one.array is not None and again.array is not None:
            yield one.name, _share(one, one.array, again.array)


def _mistake_shares(case: Case, other: Case) -> Iterator[tuple[str, float]]:
    expected = {one.name: one for one in case.expected}
    for slug in {**case.mistakes, **other.mistakes}:
        seen, again = case.mistakes.get(slug), other.mistakes.get(slug)
        if not isinstance(seen, Observation) or not isinstance(again, Observation):
            yield slug, 0.0 if seen == again else np.inf
            continue
        yield slug, max(_returned_shares(expected, seen, again))


def _returned_shares(expected: Mapping[str, Expectation], seen: Observation, again: Observation) -> Iterator[float]:
    yield 0.0 if seen.facts == again.facts and seen.returned.keys() == again.returned.keys() else np.inf
    for name, value in seen.returned.items():
        one, other = value.array, again.returned[name].array
        if one is not None and other is not None and name in expected:
            yield _share(expected[name], one, other) if one.shape == other.shape else np.inf


def _share(allowed: Expectation, one: Array, other: Array) -> float:
    """The greatest change as a share of the allowance; not-a-number and infinity must stay where they are."""
    if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return 0.0
    before, after = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        share = np.abs(after - before) / (allowed.atol + allowed.rtol * np.abs(before))
    return float(np.where(same, 0.0, np.where(np.isfinite(share), share, np.inf)).max(initial=0.0))

"""A term's own fixtures: hidden cases drawn from a secret, and variants of the public cases for single students.

What cases.py draws for a term comes from HMAC-SHA-256 of the secret over the assignment, the term, what is drawn and
the attempt. A draw that could not grade is drawn again: an idle input, a branch not taken, a mistake that loses no
points any more on an item where it does in the open set. So the same secret always gives the same bytes, and no
instructor has to look for a secret that does.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from autograder.authoring.declarations import OPEN_SECRET, Draft, Refusal, check_branches, check_draft
from autograder.authoring.generator import Generator, listed_cases, write_set
from autograder.authoring.variants import OWN, variant_folder
from autograder.grading.cases import Case
from autograder.grading.items import Assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, UsageError

MIN_SECRET, MAX_SECRET = 16, 2**16  # bytes
MAX_VARIANTS = 64
MAX_DRAWS = 25  # of one case; the sixth is already rare
ROUNDS = 300_000
TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Term:
    """What a term's fixtures are drawn from. The secret is never stored, printed or shown."""

    name: str
    secret: bytes = field(repr=False)

    def key(self, assignment: str, what: str, attempt: int = 0) -> str:
        """What cases.py draws from; says nothing of the secret or of another key."""
        text = f"{assignment}\n{self.name}\n{what}\n{attempt}"
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()

    def commitment(self, assignment: str) -> str:
        """What the manifest holds of the secret: slow to guess, the same for the same secret and term."""
        salt = f"{assignment}\n{self.name}".encode()
        return hashlib.pbkdf2_hmac("sha256", self.secret, salt, ROUNDS).hex()


@dataclass(frozen=True)
class Made:
    """What a term's regeneration did: cases of its set, variants, and how often which case was drawn anew."""

    cases: int
    variants: int
    redrawn: Mapping[str, int]


# The secret


def read_term(name: str, path: Path) -> Term:
    """The term of that name and the secret in that file; UsageError where either will not do."""
    if not TERM.fullmatch(name):
        raise UsageError(f"--term {name!r} should be a short name of letters, digits, dots and dashes: 2027-spring.")
    return Term(name, read_secret(path))


def read_secret(path: Path) -> bytes:
    """The secret in that file, without the white space around it; UsageError where it holds none."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SECRET + 1)
    except OSError as error:
        raise UsageError(f"The secret in {path} cannot be read: {error.strerror}.") from error
    secret = data.strip()
    if len(data) > MAX_SECRET or len(secret) < MIN_SECRET or len(set(secret)) < MIN_SECRET // 2:
        raise UsageError(
            f"{path} holds no secret: {MIN_SECRET} bytes or more are needed that nobody can guess, {MAX_SECRET} at "
            f"most. `openssl rand -hex 32 > {path}` makes one."
        )
    return secret


def secret_warning(path: Path) -> str:
    """One sentence where others on this machine may read the secret; "" where they may not."""
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return f"Everyone on this machine may read {path}: `chmod 600 {path}` keeps the secret one."
    return ""


# The draw


def regenerate_term(assignment: Assignment, target: Path, term: Term, variants: int, sandbox: Sandbox) -> Made:
    """Write a term's set into `target`: the public cases of the open set, hidden ones of its own, and variants.

    Everything is drawn and checked before anything is written. Raises FixtureError on a refusal.
    """
    drawing = _Drawing.of(Generator.of(assignment, sandbox))
    hidden = _names(drawing, "hidden")
    drawn, redrawn = drawing.anew(drawing.open, hidden, lambda attempt: term.key(assignment.name, "hidden", attempt))
    manifest = {"name": term.name, "commitment": term.commitment(assignment.name), "redrawn": redrawn}
    sets = [drawing.anew(drawn, _names(drawing, "public"), _variant_key(term, assignment, k)) for k in _to(variants)]
    if variants:
        manifest["variants"] = {"count": variants, "key": term.key(assignment.name, "whose variant")}
    hints, shown = drawing.generator.hints, drawing.generator.shown()
    write_set(assignment, target, [*drawn.cases.values(), *shown], hints, manifest)
    shutil.rmtree(target / OWN, ignore_errors=True)
    for number, (own_set, again) in zip(_to(variants), sets, strict=True):
        own = {**manifest, "redrawn": {**redrawn, **again}, "variants": {"number": number}}
        folder = variant_folder(target, number)
        folder.mkdir(parents=True)
        write_set(assignment, folder, [*own_set.cases.values(), *shown], hints, own)
    anew = dict(redrawn)
    for number, (_, again) in zip(_to(variants), sets, strict=True):
        anew |= {f"{case} of variant {number}": times for case, times in again.items()}
    return Made(len(drawn.cases), variants, anew)


def _to(count: int) -> range:
    return range(1, count + 1)


def _variant_key(term: Term, assignment: Assignment, number: int) -> Callable[[int], str]:
    return lambda attempt: term.key(assignment.name, f"variant {number}", attempt)


def _names(drawing: _Drawing, visibility: str) -> list[str]:
    """The cases of that visibility that are no named examples."""
    listed = listed_cases(drawing.generator.assignment)
    return [name for _, name, seen in listed if seen == visibility and not drawing.open.drafts[name].example]


@dataclass(frozen=True)
class _Set:
    """Cases by name, in the order of items.toml, and the drafts that they were made from."""

    drafts: dict[str, Draft]
    cases: dict[str, Case]


@dataclass(frozen=True)
class _Drawing:
    """The open set, and what makes others from it.

    separated   item → the mistakes that lose points on it in the open set
    """

    generator: Generator
    open: _Set
    separated: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, generator: Generator) -> _Drawing:
        drafts, cases = generator.complete(OPEN_SECRET)
        return cls(generator, _Set(drafts, {case.id: case for case in cases}), _separated(cases))

    def anew(self, around: _Set, names: Sequence[str], key: Callable[[int], str]) -> tuple[_Set, dict[str, int]]:
        """The set with these cases drawn from `key(attempt)`, and how often which was drawn anew."""
        attempts = dict.fromkeys(names, 0)
        pool = {0: self.generator.drafts(key(0))}
        self._refuse_constants(pool[0], names)
        made, waiting = _Set(dict(around.drafts), dict(around.cases)), set(names)
        while waiting:
            for name in waiting:
                attempt = attempts[name]
                if attempt not in pool:
                    pool[attempt] = self.generator.drafts(key(attempt))
                made.drafts[name] = pool[attempt][name]
            try:
                self._attempt(made, waiting)
            except Refusal as refused:
                again = set(refused.cases) & set(names)
                if not again or max(attempts[name] for name in again) + 1 >= MAX_DRAWS:
                    raise
                attempts.update({name: attempts[name] + 1 for name in again})
                waiting |= again
        return made, {name: attempt for name, attempt in attempts.items() if attempt}

    def _attempt(self, made: _Set, waiting: set[str]) -> None:
        """Store the waiting drafts as cases if they can grade; raises a Refusal if not."""
        drafts = {name: made.drafts[name] for name in sorted(waiting)}
        for draft in drafts.values():
            check_draft(draft)
        check_branches(self.generator.assignment, made.drafts, self.generator.oracle)
        made.cases.update({case.id: case for case in self.generator.checked(drafts)})
        waiting.clear()
        found = _separated(made.cases.values())
        lost = {item: slugs - found[item] for item, slugs in self.separated.items() if slugs - found[item]}
        if lost:
            cases = [case.id for case in made.cases.values() if case.item in lost]
            named = "; ".join(f"{item}: {', '.join(sorted(slugs))}" for item, slugs in lost.items())
            raise Refusal(f"This draw does not separate mistakes that the open set does ({named}).", *cases)

    def _refuse_constants(self, drawn: Mapping[str, Draft], names: Iterable[str]) -> None:
        if same := [name for name in names if _same_call(self.open.drafts[name], drawn[name])]:
            raise FixtureError(
                f"{same[0]} is the same whatever the secret, so last term's answer would do: let cases.py draw its "
                "inputs from the secret, or mark it as a named example (example=True)."
            )


def _separated(cases: Iterable[Case]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for case in cases:
        found[case.item] = found.get(case.item, frozenset()) | set(case.mistakes)
    return found


def _same_call(one: Draft, other: Draft) -> bool:
    same = one.inputs.keys() == other.inputs.keys() and one.params == other.params
    return same and all(np.array_equal(array, other.inputs[name]) for name, array in one.inputs.items())

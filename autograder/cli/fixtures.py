"""The verbs of `autograder fixtures`: make, verify, compare and read the stored tensors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from autograder.authoring.exam.selfcheck import contract_slips
from autograder.authoring.fixtures.diff import difference_text, item_json, item_text, read_set, sample_differences
from autograder.authoring.fixtures.stored_set import (
    OWN,
    Term,
    Variants,
    objection,
    read_secret,
    read_term,
    read_variants,
    refuse_inside,
    refuse_target,
    secret_warning,
    what_goes,
)
from autograder.authoring.fixtures.terms import MAX_VARIANTS, Made
from autograder.authoring.fixtures.verify import Movement, Verification, regenerate_into
from autograder.authoring.fixtures.verify import verify as verify_fixtures
from autograder.authoring.handout.release import not_independent
from autograder.authoring.proofreading.proofread import authored
from autograder.checking.terminal import width
from autograder.cli.console import print_json
from autograder.cli.options import AssignmentOption, FixturesOption, JsonOption, course
from autograder.grading.assignments import find_assignment, find_assignments
from autograder.grading.choice import assignment_of_fixtures, assignment_of_item
from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import writing
from autograder.vocabulary.text import visible

fixtures_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The stored tensors: make, verify, compare or read them."
)
SecretOption = Annotated[
    Path | None, typer.Option("--secret-file", readable=False, help="The file with the secret of the term.")
]


def chosen_fixtures(assignment: Assignment, folder: Path | None) -> Fixtures:
    """The fixtures in `folder`, or the assignment's own; UsageError where the folder holds none."""
    if folder is not None and not os.access(folder / MANIFEST, os.R_OK):
        raise UsageError(f"{folder} holds no readable {MANIFEST}: give --fixtures a folder with a set of fixtures.")
    return read_fixtures(assignment, folder=folder)


def chosen_variants(assignment: Assignment, folder: Path | None) -> Variants:
    """The variants in that folder, all of them read and in order."""
    return read_variants(assignment, folder or assignment.folder)


@fixtures_app.command("regenerate")
def fixtures_regenerate(
    term: Annotated[str | None, typer.Option("--term", help="Hidden cases of this term's own: 2027-spring.")] = None,
    secret_file: SecretOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", readable=False, help="Another folder for them, outside the course.")
    ] = None,
    variants: Annotated[
        int, typer.Option("--variants", min=0, max=MAX_VARIANTS, help="Sets of public cases for single students.")
    ] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of another set in that folder; says what goes.")
    ] = False,
    assignment: AssignmentOption = None,
) -> None:
    """Make public/, hidden/ and manifest.json anew from cases.py, oracle.py and mistakes.py."""
    if (term is None) != (secret_file is None) or (variants and term is None):
        raise UsageError("A term's own fixtures take both --term and --secret-file; so do --variants.")
    drawn_from = None if term is None or secret_file is None else read_term(term, secret_file)
    if secret_file is not None and (warning := secret_warning(secret_file)):
        print(f"autograder: {visible(warning)}", file=sys.stderr)
    one_alone = out is not None or drawn_from is not None
    if one_alone:
        several = [authored(course(), assignment, find_assignment)]
    else:
        several = authored(course(), assignment, find_assignments)
    for chosen in several:
        target = out or chosen.folder
        _choose_target(chosen, target, drawn_from, variants, replace=replace)
        _regenerate(chosen, target, drawn_from, variants)


def _choose_target(assignment: Assignment, target: Path, term: Term | None, variants: int, *, replace: bool) -> None:
    """Refuse a folder that holds what is not the set's own; with `replace` say instead what goes."""
    refuse_inside(assignment, target)
    with writing(target):
        if not replace:
            refuse_target(assignment, target, term, variants)
        elif objection(assignment, target, term, variants) and (gone := what_goes(target)):
            print(f"autograder: this goes from {target}: {visible(gone)}.", file=sys.stderr)


def _regenerate(assignment: Assignment, target: Path, term: Term | None, variants: int) -> None:
    with writing(target), Console(stderr=True).status("oracle, solution and every mistake are run on every case"):
        made = regenerate_into(assignment.folder, target, term, variants, look_for_fixed=True)
    print(f"{made.cases} cases stored in {target}. Oracle and solution agree; every known mistake is separated.")
    if names := not_independent(assignment):
        print(f"NOT INDEPENDENT: the oracle of {', '.join(names)} is the solution itself, which proves nothing.")
    if term is None:
        for slip in contract_slips(assignment, read_fixtures(assignment, folder=target).hints):
            print(f"selfcheck would refuse: {visible(slip)}")
    if made.fixed:
        advice = "Drawn, Number and Whole draw from it; example=True says that a case stays"
        print(f"A new term would be refused: no secret changes {', '.join(made.fixed)}. {advice}.")
    if term is not None:
        _say_term(term.name, made)


def _say_term(term: str, made: Made) -> None:
    print(f"Hidden cases are those of {term}; public ones and the named examples are what they were.")
    again = ", ".join(f"{case} ({times} time{'s' * (times != 1)})" for case, times in made.redrawn.items())
    if again:
        print(f"Drawn again, since the first draw told too little apart: {again}.")
    if made.variants:
        print(f"{made.variants} variants of the public cases lie in {OWN}/.")


@fixtures_app.command("verify")
def fixtures_verify(
    fixtures: FixturesOption = None, secret_file: SecretOption = None, assignment: AssignmentOption = None
) -> None:
    """Check every stored hash, make all fixtures anew elsewhere, and compare bytes, or else how far values moved."""
    here = course()
    several = [assignment_of_fixtures(here, [fixtures], assignment)] if fixtures else find_assignments(here, assignment)
    secret = b"" if secret_file is None else read_secret(secret_file)
    harmful = [one for one in several if not _verified(one, fixtures, secret, f" of {one.name}" * (len(several) > 1))]
    if harmful:
        advice = "if cases, oracle, probes, solution or mistakes were meant to change."
        print(f"Run `autograder fixtures regenerate` {advice}")
        raise SystemExit(3)


def _verified(assignment: Assignment, folder: Path | None, secret: bytes, of: str) -> bool:
    """Say what verification found; whether grading here is as good as where the fixtures were made."""
    chosen_fixtures(assignment, folder)
    with Console(stderr=True).status("making all fixtures anew, to compare"):
        found = verify_fixtures(assignment, folder, secret)
    for name, (then, here) in found.versions.items():
        print(f"{name} was {then} when they were made, and is {here} here.")
    if not found.different:
        print(f"{found.files} files{of}: every hash is right, and a regeneration makes the same bytes.")
        return True
    print(f"{len(found.different)} of {found.files} files{of} would be made otherwise now:")
    for name in found.different:
        print(f"  {name}{_moved(found, name)}")
    if found.harmless:
        print("That is rounding: no verdict depends on it, and grading here is as good as where they were made.")
        return True
    numbers = [moved for moved in found.moved.values() if not moved.harmless]
    if numbers and all(moved.keeps_verdicts for moved in numbers) and not found.told:
        print("No verdict depends on it, but a known mistake that acts otherwise here may go unnamed.")
    return False


def _moved(found: Verification, name: str) -> str:
    movement = found.moved.get(name)
    return f"  {_how_far(movement)}" if movement is not None else ""


def _how_far(moved: Movement) -> str:
    if moved.share == float("inf"):
        return "not in numbers alone"
    values = f"{moved.share:.2g} of what is allowed ({moved.where})" if moved.share else "no expected value"
    mistakes = f"; of a known mistake by {moved.mistakes:.2g}" if moved.mistakes else ""
    otherwise = f"; acts otherwise: {', '.join(moved.otherwise)}" if moved.otherwise else ""
    return f"moved: {values}{mistakes}{otherwise}"


@fixtures_app.command("diff")
def fixtures_diff(
    before: Annotated[Path, typer.Argument(metavar="A", readable=False, help="A folder with a set of fixtures.")],
    after: Annotated[Path, typer.Argument(metavar="B", readable=False, help="A folder with another one.")],
    submissions: Annotated[
        Path | None,
        typer.Option("--submissions", readable=False, help="Graded against both; else the sample class."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Submissions at a time.")] = max(1, os.cpu_count() or 1),
    assignment: AssignmentOption = None,
) -> None:
    """Say in words what changed from A to B, and whose score among some submissions would change."""
    chosen = assignment_of_fixtures(course(), [before, after], assignment)
    one, other = read_set(chosen, before), read_set(chosen, after)
    print(difference_text(one, other), end="")
    paths = [submissions or chosen.folder / "submissions"]
    if submissions is None and not paths[0].is_dir():
        return
    with Console(stderr=True).status("grading the same submissions against both"):
        changes = sample_differences(one, other, paths, jobs=jobs)
    print(changes, end="")


@fixtures_app.command("show")
def fixtures_show(
    item: Annotated[str, typer.Argument(help="The item whose cases to print.")],
    fixtures: FixturesOption = None,
    as_json: JsonOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """Print the cases of an item, hidden ones too, as a person would want to read them."""
    chosen = assignment_of_item(course(), item, assignment)
    if as_json:
        print_json(item_json(chosen.item(item), chosen_fixtures(chosen, fixtures)))
    else:
        print(item_text(chosen.item(item), chosen_fixtures(chosen, fixtures), width()), end="")

"""The verbs `release`, `bundle` and `fixtures`: from the solution to stored tensors, handouts, platforms' graders."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from autograder.authoring.fixtures.show import item_text
from autograder.authoring.fixtures.stored_set import refuse_inside, what_goes
from autograder.authoring.fixtures.terms import read_secret, read_term, secret_warning
from autograder.authoring.fixtures.verify import difference_text, regenerate_into
from autograder.authoring.fixtures.verify import verify as verify_fixtures
from autograder.authoring.handout.release import (
    Files,
    handout_files,
    not_independent,
    refuse_release,
    write_source_notebook,
    zip_bytes,
)
from autograder.authoring.proofreading import authored, refuse_faults
from autograder.checking.handout import write_handout
from autograder.checking.terminal import width
from autograder.cli import options
from autograder.cli.terminal import status
from autograder.grading.assignment import Assignment, all_assignments, find_assignment
from autograder.grading.choice import assignment_of_fixtures, assignment_of_item, assignments_to_release
from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.platforms import bundles
from autograder.platforms.containers import Visibility
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import PRIVATE, READABLE, write_own, writing
from autograder.vocabulary.text import counted, visible

WHEN_SEEN = "When students see how hidden cases went, and a total; with `hidden` the total alone, at once."
FOR_EACH = "per-student"  # a folder of sets that older versions made


def chosen_fixtures(assignment: Assignment, folder: Path | None) -> Fixtures:
    """Read the fixtures in `folder`, or the assignment's own; UsageError where it holds none, or more."""
    if folder is not None and not os.access(folder / MANIFEST, os.R_OK):
        raise UsageError(f"{folder} holds no readable {MANIFEST}: give --fixtures a folder with a set of fixtures.")
    if folder is not None and (folder / FOR_EACH).is_dir():
        gone = f"public cases for each student in {FOR_EACH}/, of a version before this one, which does not read them"
        raise UsageError(f"{folder} holds {gone}. Make the set anew in another folder, or take {FOR_EACH}/ away.")
    return read_fixtures(assignment, folder=folder)


# release


def release(
    zip_file: Annotated[Path | None, options.path("--zip", "Write the handout as a zip, too.")] = None,
    fixtures: options.Fixtures = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="For staff, while an oracle is the solution itself; never for students.")
    ] = False,
    replace: options.ReplaceFile = False,
    assignment: options.Assignment = None,
) -> None:
    """Make the handout from the solution: stubs, notebook, given files, public cases, the checker."""
    if fixtures:
        several = [assignment_of_fixtures(options.course(), fixtures, assignment)]
    else:
        several = assignments_to_release(options.course(), zip_file, assignment)
    for chosen in several:
        refuse_faults(chosen.folder)
        if not draft:
            refuse_release(chosen)
        elif zip_file is not None:
            raise UsageError("--draft makes no zip: what students get has an oracle of its own.")
        if fixtures is not None:
            chosen_fixtures(chosen, fixtures)  # or say that the folder holds none
        files = handout_files(chosen, fixtures)
        write_handout(files, chosen.handout, replace=replace)
        write_source_notebook(chosen)
        print(f"{chosen.handout}: {len(files)} files. No line of the solution and no hidden case is in them.")
        if names := not_independent(chosen):
            print(f"A DRAFT, not for students: the oracle of {', '.join(names)} is the solution itself.")
        else:
            exam = f"autograder selfcheck --assignment {chosen.name}"
            print(f"This examined nothing: {exam} says whether students may have it.")
        if zip_file is not None:
            _write_zip(zip_file, files, chosen.name, replace=replace, more=" Students need it and nothing else.")


def _write_zip(path: Path, files: Files, folder: str, mode: int = READABLE, *, replace: bool, more: str = "") -> None:
    with writing(path, "file with --zip"):
        write_own(path.parent, {path.name: zip_bytes(files, folder)}, replace=replace, mode=mode)
    print(f"{path}: {path.stat().st_size:,} bytes.{more}")


# bundle

bundle_app = options.group("What to upload to a platform so that it grades by itself.")
ZipOption = Annotated[Path, options.path("--zip", "The zip to write.")]


@bundle_app.command("gradescope")
def bundle_gradescope(
    zip_file: ZipOption,
    hidden_cases: Annotated[Visibility, typer.Option(help=WHEN_SEEN)] = "visible",
    fixtures: options.Fixtures = None,
    replace: options.ReplaceFile = False,
    assignment: options.Assignment = None,
) -> None:
    """The autograder to upload: hidden cases are in it, for Gradescope's container alone."""
    chosen = find_assignment(options.course(), assignment)
    _write_zip(zip_file, bundles.gradescope_files(chosen, fixtures, hidden_cases), "", PRIVATE, replace=replace)
    print(f"The assignment in Gradescope is worth {chosen.max_points:g} points, on the base image Ubuntu 24.04.")


@bundle_app.command("prairielearn")
def bundle_prairielearn(
    zip_file: ZipOption,
    image: Annotated[str, typer.Option("--image", help="The image that you build from tests/Dockerfile.")],
    fixtures: options.Fixtures = None,
    replace: options.ReplaceFile = False,
    assignment: options.Assignment = None,
) -> None:
    """A question directory: hidden cases are in its tests/, which PrairieLearn shows to nobody."""
    chosen = find_assignment(options.course(), assignment)
    _write_zip(zip_file, bundles.prairielearn_files(chosen, image, fixtures), chosen.name, PRIVATE, replace=replace)


@bundle_app.command("github")
def bundle_github(
    zip_file: ZipOption, replace: options.ReplaceFile = False, assignment: options.Assignment = None
) -> None:
    """A template repository on GitHub: the handout and a workflow. No hidden case is in it."""
    chosen = find_assignment(options.course(), assignment)
    _write_zip(zip_file, bundles.github_files(chosen), chosen.name, replace=replace)
    print("Students can change what runs in their repository: grade their clones with `autograder grade` in the end.")


# fixtures

fixtures_app = options.group("The stored tensors: make, verify, compare or read them.")
SecretOption = Annotated[Path | None, options.path("--secret-file", "The file with the secret of the term.")]


@fixtures_app.command("regenerate")
def fixtures_regenerate(
    term: Annotated[str | None, typer.Option("--term", help="Hidden cases of this term's own: 2027-spring.")] = None,
    secret_file: SecretOption = None,
    out: Annotated[Path | None, options.path("--out", "Another folder for them, outside the course.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of another set in that folder; says what goes.")
    ] = False,
    fresh: options.Fresh = False,
    assignment: options.Assignment = None,
) -> None:
    """Make public/, hidden/ and manifest.json anew from functions.py, oracle.py and mistakes.py."""
    if (term is None) != (secret_file is None):
        raise UsageError("A term's own fixtures take both --term and --secret-file.")
    drawn_from = None if term is None or secret_file is None else read_term(term, secret_file)
    if secret_file is not None and (warning := secret_warning(secret_file)):
        print(f"autograder: {visible(warning)}", file=sys.stderr)

    def found(root: Path, name: str | None) -> Sequence[Assignment]:
        return [find_assignment(root, name)] if out or drawn_from else all_assignments(root, name)

    for chosen in authored(options.course(), assignment, found):
        target = out or chosen.folder
        refuse_inside(chosen, target)
        with writing(target):
            described = drawn_from.described(chosen.name) if drawn_from else None
            if gone := what_goes(chosen, target, described, replace=replace):
                print(f"autograder: this goes from {target}: {visible(gone)}.", file=sys.stderr)
        with writing(target), status("oracle, solution and every mistake are run on every case"):
            made = regenerate_into(chosen.folder, target, drawn_from, cache=None if fresh else options.CACHE)
        print(f"{made.cases} cases stored in {target}. Oracle and solution agree; every known mistake is separated.")
        if names := not_independent(chosen):
            print(f"NOT INDEPENDENT: the oracle of {', '.join(names)} is the solution itself, which proves nothing.")
        if drawn_from:
            print(
                f"Hidden cases are those of {drawn_from.name}; public ones and the named examples are what they were."
            )
            if again := ", ".join(f"{case} ({counted(times, 'time')})" for case, times in made.redrawn.items()):
                print(f"Drawn again, since the first draw told too little apart: {again}.")


@fixtures_app.command("verify")
def fixtures_verify(
    fixtures: options.Fixtures = None, secret_file: SecretOption = None, assignment: options.Assignment = None
) -> None:
    """Check every stored hash, make all fixtures anew elsewhere, and compare bytes, or else how far values moved."""
    here = options.course()
    several = [assignment_of_fixtures(here, fixtures, assignment)] if fixtures else all_assignments(here, assignment)
    secret = b"" if secret_file is None else read_secret(secret_file)
    is_as_good = True
    for chosen in several:
        of = f" of {chosen.name}" if len(several) > 1 else ""
        chosen_fixtures(chosen, fixtures)
        with status("making all fixtures anew, to compare"):
            found = verify_fixtures(chosen, fixtures, secret)
        for name, (then, now) in found.versions.items():
            print(f"{name} was {then} when they were made, and is {now} here.")
        if not found.different:
            print(f"{found.files} files{of}: every hash is right, and a regeneration makes the same bytes.")
            continue
        print(f"{len(found.different)} of {found.files} files{of} would be made otherwise now:")
        for name in found.different:
            share, where = found.moved.get(name, (0.0, ""))
            moved = f"  moved: {share:.2g} of what is allowed ({where})" if where else "  not in numbers alone"
            print(f"  {name}" + moved * (name in found.moved))
        if found.harmless:
            print("That is rounding: no verdict depends on it, and grading here is as good as where they were made.")
        is_as_good = is_as_good and found.harmless
    if not is_as_good:
        advice = "if cases, oracle, probes, solution or mistakes were meant to change."
        print(f"Run `autograder fixtures regenerate` {advice}")
        raise SystemExit(3)


@fixtures_app.command("diff")
def fixtures_diff(
    before: Annotated[Path, options.argument("A", "A folder with a set of fixtures.")],
    after: Annotated[Path, options.argument("B", "A folder with another one.")],
) -> None:
    """Name the cases that are new, gone or changed from A to B, and how far an expected value moved."""
    print(difference_text(before, after), end="")


@fixtures_app.command("show")
def fixtures_show(
    item: Annotated[str, typer.Argument(help="The item whose cases to print.")],
    fixtures: options.Fixtures = None,
    assignment: options.Assignment = None,
) -> None:
    """Print the cases of an item, hidden ones too, as a person would want to read them."""
    chosen = assignment_of_item(options.course(), item, assignment)
    print(item_text(chosen.item(item), chosen_fixtures(chosen, fixtures), width()), end="")

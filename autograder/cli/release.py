"""The verbs `release` and `bundle`: solution → handout, and what other platforms grade with by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autograder.authoring.fixtures.stored_set import Variants
from autograder.authoring.handout.release import (
    Files,
    handout_files,
    not_independent,
    refuse_release,
    student_zips,
    write_source_notebook,
    zip_bytes,
)
from autograder.authoring.proofreading.proofread import refuse_faults
from autograder.checking.handout import write_handout
from autograder.cli.fixtures import chosen_fixtures, chosen_variants
from autograder.cli.options import (
    AssignmentOption,
    FixturesOption,
    HiddenCases,
    HiddenOption,
    ReplaceFileOption,
    VariantByOption,
    course,
)
from autograder.gradebook.roster import read_roster
from autograder.grading.assignments import find_assignment
from autograder.grading.choice import assignment_of_fixtures, assignments_to_release
from autograder.grading.items import Assignment
from autograder.platforms import bundles
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import PRIVATE, READABLE, write_own, writing

bundle_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What to upload to a platform so that it grades by itself."
)
ZipOption = Annotated[Path, typer.Option("--zip", readable=False, help="The zip to write.")]


def release(
    zip_file: Annotated[
        Path | None, typer.Option("--zip", readable=False, help="Write the handout as a zip, too.")
    ] = None,
    fixtures: FixturesOption = None,
    variant_by: VariantByOption = None,
    roster: Annotated[
        Path | None, typer.Option("--roster", readable=False, help="A CSV with a column `student`, for --variant-by.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", readable=False, help="Where each student's zip goes, for --variant-by.")
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="For staff, while an oracle is the solution itself; never for students.")
    ] = False,
    replace: ReplaceFileOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """Make the handout from the solution: stubs, notebook, given files, public cases, the checker."""
    if variant_by or fixtures:
        several = [assignment_of_fixtures(course(), [fixtures] if fixtures else [], assignment)]
    else:
        several = assignments_to_release(course(), zip_file, assignment)
    if variant_by:
        refuse_release(several[0])
        _release_variants(chosen_variants(several[0], fixtures), roster, out, replace=replace)
        return
    for chosen in several:
        refuse_faults(chosen.folder)
        if not draft:
            refuse_release(chosen)
        elif zip_file is not None:
            raise UsageError("--draft makes no zip: what students get has an oracle of its own.")
        _release(chosen, fixtures, zip_file, replace=replace)


def _release(chosen: Assignment, fixtures: Path | None, zip_file: Path | None, *, replace: bool) -> None:
    chosen_fixtures(chosen, fixtures)
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


def _release_variants(variants: Variants, roster: Path | None, out: Path | None, *, replace: bool) -> None:
    if roster is None or out is None:
        raise UsageError("--variant-by student makes a zip for each student: give --roster FILE and --out FOLDER.")
    students = [person.student for person in read_roster(roster).people]
    with writing(out):
        zips = student_zips(variants, students)
        write_own(out, zips, replace=replace)
    print(f"{out}: {len(zips)} zips, each with the public cases of one of {variants.count} variants.")


@bundle_app.command("gradescope")
def bundle_gradescope(
    zip_file: ZipOption,
    hidden_cases: HiddenOption = HiddenCases.visible,
    fixtures: FixturesOption = None,
    replace: ReplaceFileOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """The autograder to upload: hidden cases are in it, for Gradescope's container alone."""
    chosen = find_assignment(course(), assignment)
    _write_zip(zip_file, bundles.gradescope_files(chosen, fixtures, hidden_cases.value), "", PRIVATE, replace=replace)
    print(f"The assignment in Gradescope is worth {chosen.max_points:g} points, on the base image Ubuntu 24.04.")


@bundle_app.command("prairielearn")
def bundle_prairielearn(
    zip_file: ZipOption,
    image: Annotated[str, typer.Option("--image", help="The image that you build from tests/Dockerfile.")],
    fixtures: FixturesOption = None,
    replace: ReplaceFileOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """A question directory: hidden cases are in its tests/, which PrairieLearn shows to nobody."""
    chosen = find_assignment(course(), assignment)
    _write_zip(zip_file, bundles.prairielearn_files(chosen, image, fixtures), chosen.name, PRIVATE, replace=replace)


@bundle_app.command("classroom", hidden=True)
@bundle_app.command("github")
def bundle_github(zip_file: ZipOption, replace: ReplaceFileOption = False, assignment: AssignmentOption = None) -> None:
    """A template repository on GitHub: the handout and a workflow. No hidden case is in it."""
    chosen = find_assignment(course(), assignment)
    _write_zip(zip_file, bundles.github_files(chosen), chosen.name, replace=replace)
    print("Students can change what runs in their repository: grade their clones with `autograder grade` in the end.")


def _write_zip(path: Path, files: Files, folder: str, mode: int = READABLE, *, replace: bool, more: str = "") -> None:
    with writing(path, "file with --zip"):
        write_own(path.parent, {path.name: zip_bytes(files, folder)}, replace=replace, mode=mode)
    print(f"{path}: {path.stat().st_size:,} bytes.{more}")

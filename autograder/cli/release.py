"""The verb `release`: solution → handout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autograder.authoring.fixtures.variants import Variants
from autograder.authoring.handout.release import (
    handout_files,
    write_handout,
    write_source_notebook,
    write_student_zips,
    zip_bytes,
)
from autograder.authoring.independence import not_independent, refuse_release
from autograder.authoring.proofreading.proofread import refuse_faults
from autograder.cli.fixtures import chosen_fixtures, chosen_variants
from autograder.cli.options import AssignmentOption, FixturesOption, VariantByOption, course
from autograder.gradebook.roster import read_roster
from autograder.grading.choice import assignment_of_fixtures, assignments_to_release
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import write_atomically, writing


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
    assignment: AssignmentOption = None,
) -> None:
    """Make the handout from the solution: stubs, notebook, given files, public cases, the checker."""
    if variant_by or fixtures:
        several = [assignment_of_fixtures(course(), [fixtures] if fixtures else [], assignment)]
    else:
        several = assignments_to_release(course(), zip_file, assignment)
    if variant_by:
        refuse_release(several[0])
        _release_variants(chosen_variants(several[0], fixtures), roster, out)
        return
    for chosen in several:
        refuse_faults(chosen.folder)
        if not draft:
            refuse_release(chosen)
        elif zip_file is not None:
            raise UsageError("--draft makes no zip: what students get has an oracle of its own.")
        _release(chosen, fixtures, zip_file)


def _release(chosen: Assignment, fixtures: Path | None, zip_file: Path | None) -> None:
    chosen_fixtures(chosen, fixtures)
    files = handout_files(chosen, fixtures)
    write_source_notebook(chosen)
    write_handout(files, chosen.handout)
    print(f"{chosen.handout}: {len(files)} files. No line of the solution and no hidden case is in them.")
    if not not_independent(chosen):
        exam = f"autograder selfcheck --assignment {chosen.name}"
        print(f"This examined nothing: {exam} says whether students may have it.")
    if names := not_independent(chosen):
        print(f"A DRAFT, not for students: the oracle of {', '.join(names)} is the solution itself.")
    if zip_file is not None:
        with writing(zip_file, "file with --zip"):
            write_atomically(zip_file, zip_bytes(files, chosen.name))
        print(f"{zip_file}: {zip_file.stat().st_size:,} bytes. Students need it and nothing else.")


def _release_variants(variants: Variants, roster: Path | None, out: Path | None) -> None:
    if roster is None or out is None:
        raise UsageError("--variant-by student makes a zip for each student: give --roster FILE and --out FOLDER.")
    students = [person.student for person in read_roster(roster).people]
    with writing(out):
        count = write_student_zips(variants, students, out)
    print(f"{out}: {count} zips, each with the public cases of one of {variants.count} variants.")

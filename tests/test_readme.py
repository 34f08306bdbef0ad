"""The commands that README.md and the folders' documents show are run, and must print what these show.

`python tests/support/shown.py [DOCUMENT …]` writes what they print now into them.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path

import pytest
from picture import PICTURE, templates
from PIL import Image
from shown import KIT, LONG, Section, as_shown, comparable, copy_of_the_kit, documents, runs, sections, text_of

from autograder import __version__
from autograder.sandbox.sandbox import probe

EXAM = "autograder selfcheck --assignment"
PROJECT = tomllib.loads((KIT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALL = [pytest.param(run, id=f"{run[0].document}-{run[0].heading}", marks=pytest.mark.long) for run in runs()]


def left_out(command: str) -> bool:
    """Whether this machine, or another test, is why a command is not run here."""
    if command.startswith(EXAM):
        return True  # it takes minutes: test_exam.py runs it, and holds what is shown against that
    layers = {layer for layer, why in probe().items() if why} if command == "autograder doctor" else set()
    return bool(layers)


@pytest.mark.parametrize("run", ALL)
def test_each_command_prints_what_the_document_shows(run: list[Section], tmp_path: Path) -> None:
    shell = copy_of_the_kit(tmp_path)
    differences = []
    for section in run:
        shell.folder = shell.root
        for step in section.steps:
            if left_out(step.command):
                continue
            shown = comparable(step.output)
            printed = as_shown(comparable(shell.run(step.command)), shown)
            differences += difflib.unified_diff(shown, printed, section.heading, step.command, lineterm="")
    assert not differences, "\n".join([*differences, f"Meant? python tests/support/shown.py {run[0].document}"])


def test_what_takes_minutes_is_there_to_be_run() -> None:
    assert {section.heading for document in documents() for section in sections(document)} >= LONG


def test_the_readme_fits_on_a_screen() -> None:
    assert len(text_of("README.md").splitlines()) < 100


def test_the_first_command_installs_the_pinned_torch_in_its_small_build_and_grades_the_sample_class() -> None:
    (torch,) = [name for name in PROJECT["dependencies"] if name.startswith("torch")]
    assert sections("README.md")[0].steps[0].command == (
        f"pip install {torch} --index-url https://download.pytorch.org/whl/cpu; "
        "pip install -e . && autograder grade fixtures/policy_gradient/submissions --out grades"
    )


def test_continuous_integration_runs_the_command_that_tests() -> None:
    assert "```sh\npip install -e '.[test]' && pytest\n```" in text_of("README.md")
    run = (KIT / ".ci" / "run").read_text(encoding="utf-8")
    assert "pip install --quiet -e '.[test]'\n" in run
    assert "\nstage pytest tests\n" in run


@pytest.mark.parametrize("document", documents())
def test_every_link_leads_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", text_of(document)):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        found = (KIT / document).parent / path if path else KIT / document
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def anchors(path: Path) -> set[str]:
    """What a heading of a document can be linked by."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readmes_table_has_every_folder_with_a_document_of_its_own() -> None:
    listed = set(re.findall(r"^\| \[?`(\w+)/`", text_of("README.md"), re.MULTILINE))
    assert all((KIT / name).is_dir() for name in listed)
    assert listed >= {document.partition("/")[0] for document in documents() if "/" in document}


def test_every_extra_that_a_document_asks_for_exists() -> None:
    named = {name for document in documents() for name in re.findall(r"'\.\[([\w,]+)\]'", text_of(document))}
    assert {extra for one in named for extra in one.split(",")} <= set(PROJECT["optional-dependencies"])


def test_the_changes_begin_with_this_version() -> None:
    assert re.findall(r"^## (\S+)", text_of("autograder/CHANGES.md"), re.MULTILINE)[0] == __version__


def test_pictures_are_small() -> None:
    for document in documents():
        for name in re.findall(r"!\[[^]]+\]\(([^)]+\.png)\)", text_of(document)):
            assert ((KIT / document).parent / name).stat().st_size < 150_000


def test_the_picture_of_a_page_was_made_with_the_templates_that_pages_are_made_with() -> None:
    with Image.open(PICTURE) as picture:
        made_with = picture.info["templates"]
    assert made_with == templates(), "Look at a page, then: python tests/support/picture.py"


def test_contributors_map_names_what_each_file_defines() -> None:
    text = (KIT / "autograder" / "README.md").read_text(encoding="utf-8").partition("## For contributors")[2]
    rows = re.findall(r"\| `(\w+)` \| `([\w/]+\.py)` \|", text)
    assert len(rows) > 12
    for name, file in rows:
        assert re.search(rf"^(def |class )?{name}\b", (KIT / "autograder" / file).read_text("utf-8"), re.MULTILINE), (
            name
        )

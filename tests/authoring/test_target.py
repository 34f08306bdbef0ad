"""Where a set of fixtures may be written: nothing of anybody's is lost but what --replace names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import toy_kit
from in_process import autograder_in_process as run
from toy_kit import change, toy_assignment

from autograder.authoring.fixtures.stored_set import manifest_of, what_goes
from autograder.authoring.fixtures.terms import Term, regenerate_term
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

SECRET = b"a secret of this course alone"
SPRING = Term("2027-spring", SECRET)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_course(tmp_path_factory.mktemp("target") / "kit", tmp_path_factory)


@pytest.fixture(scope="module")
def stored(kit: Path, tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """A term's set, and somebody's notes beside it."""
    folder = tmp_path_factory.mktemp("stored")
    regenerate_term(toy_assignment(kit), folder, SPRING, sandbox)
    (folder / "hidden" / "notes.txt").write_text("which draws were odd")
    return folder


@pytest.fixture
def spring(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "spring")


def test_a_set_goes_into_an_empty_folder_or_over_itself(kit: Path, spring: Path, tmp_path: Path) -> None:
    toy = toy_assignment(kit)
    (tmp_path / "empty").mkdir()
    for target, term in ((tmp_path / "new", SPRING), (tmp_path / "empty", None), (spring, SPRING), (toy.folder, None)):
        assert what_goes(toy, target, described(term), replace=False) == ""


def described(term: Term | None) -> dict[str, str] | None:
    return term.described("toy") if term else None


@pytest.mark.parametrize("place", ["fixtures/x", "spring", "."])
def test_course_folder_takes_no_set_even_with_replace(kit: Path, place: str) -> None:
    before = sorted(kit.rglob("*"))
    done = run(kit, "fixtures", "regenerate", "--out", kit / place, "--replace")
    assert done.returncode == 2
    assert f"{kit / place} lies in the course, {kit}: " in done.stderr
    assert sorted(kit.rglob("*")) == before


@pytest.mark.parametrize(
    ("term", "assignment", "reason"),
    [
        (Term("2027-autumn", SECRET), "toy", "holds the fixtures of toy, term 2027-spring"),
        (Term("2027-spring", SECRET * 2), "toy", "drawn from another secret"),
        (None, "toy", "holds the fixtures of toy, term 2027-spring"),
        (SPRING, "other", "holds the fixtures of other, term 2027-spring"),
    ],
)
def test_another_set_is_refused_with_what_would_go(
    kit: Path, spring: Path, term: Term | None, assignment: str, reason: str
) -> None:
    change(spring / "manifest.json", '"assignment": "toy"', f'"assignment": "{assignment}"')
    with pytest.raises(UsageError) as refused:
        what_goes(toy_assignment(kit), spring, described(term), replace=False)
    told = str(refused.value)
    assert reason in told
    assert "Nothing was written" in told
    assert f"--replace takes its place; this goes: the fixtures of {assignment}, term 2027-spring, 6 files" in told


def test_a_terms_set_is_refused_in_the_repositorys_own_folder(kit: Path) -> None:
    toy = toy_assignment(kit)
    with pytest.raises(UsageError, match="holds the fixtures of toy, the open set"):
        what_goes(toy, toy.folder, described(SPRING), replace=False)


def test_folder_with_other_files_is_refused_and_kept(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis" / "public").mkdir(parents=True)
    (tmp_path / "thesis" / "public" / "chapter.tex").write_text("years of work")
    done = run(kit, "fixtures", "regenerate", "--out", tmp_path / "thesis")
    assert done.returncode == 2
    assert "thesis holds 'public' and no set of fixtures. Nothing was written" in done.stderr
    assert [path.name for path in (tmp_path / "thesis").rglob("*")] == ["public", "chapter.tex"]


def test_regenerated_set_keeps_foreign_files_and_drops_stale_ones(
    kit: Path, spring: Path, tmp_path: Path, sandbox: Sandbox
) -> None:
    course = shutil.copytree(kit, tmp_path / "course", ignore=shutil.ignore_patterns("autograder"))
    change(course / "fixtures/toy/items.toml", 'id = "shift-values"', 'id = "shift-moved"')
    regenerate_term(toy_assignment(course), spring, SPRING, sandbox)
    left = {path.relative_to(spring).as_posix() for path in spring.rglob("*") if path.is_file()}
    assert left == {
        "hidden/notes.txt",
        "hidden/ramp-values.safetensors",
        "items.toml",
        "manifest.json",
        "probes.py",
        "public/ramp-values.safetensors",
        "public/shift-moved.safetensors",
    }


@pytest.mark.long
def test_replace_says_what_goes(kit: Path, spring: Path) -> None:
    done = run(kit, "fixtures", "regenerate", "--out", spring, "--replace")
    assert done.returncode == 0
    assert f"autograder: this goes from {spring}: the fixtures of toy, term 2027-spring, 6 files (" in done.stderr
    assert "term" not in (manifest_of(spring) or {})
    assert (spring / "hidden" / "notes.txt").is_file()

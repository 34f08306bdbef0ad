"""Where a set of fixtures may be written: nothing of anybody's is lost but what --replace names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import toy_kit
from toy_kit import change, toy_assignment

from autograder.authoring.fixtures.stored_set import Term, manifest_of, objection, refuse_target, what_goes
from autograder.authoring.fixtures.terms import regenerate_term
from autograder.cli.main import main
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

SECRET = b"a secret of this course alone"
SPRING = Term("2027-spring", SECRET)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path_factory.mktemp("target") / "kit", tmp_path_factory)


@pytest.fixture(scope="module")
def stored(kit: Path, tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """A term's set with two variants, and somebody's notes beside it."""
    folder = tmp_path_factory.mktemp("stored")
    regenerate_term(toy_assignment(kit), folder, SPRING, 2, sandbox)
    (folder / "hidden" / "notes.txt").write_text("which draws were odd")
    return folder


@pytest.fixture
def spring(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "spring")


def test_a_set_goes_into_an_empty_folder_or_over_itself(kit: Path, spring: Path, tmp_path: Path) -> None:
    toy = toy_assignment(kit)
    (tmp_path / "empty").mkdir()
    for target, term, variants in (
        (tmp_path / "new", SPRING, 0),
        (tmp_path / "empty", None, 0),
        (spring, SPRING, 2),
        (toy.folder, None, 0),
    ):
        assert objection(toy, target, term, variants) == ""


@pytest.mark.parametrize("place", ["fixtures/x", "spring", "."])
def test_course_folder_takes_no_set_even_with_replace(
    kit: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(kit.rglob("*"))
    words = ["autograder", "--course", str(kit), "fixtures", "regenerate", "--out", str(kit / place), "--replace"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"{kit / place} lies in the course, {kit}: " in capsys.readouterr().err
    assert sorted(kit.rglob("*")) == before


@pytest.mark.parametrize(
    ("term", "variants", "reason"),
    [
        (Term("2027-autumn", SECRET), 2, "holds the fixtures of toy, term 2027-spring"),
        (Term("2027-spring", SECRET * 2), 2, "drawn from another secret"),
        (None, 0, "holds the fixtures of toy, term 2027-spring"),
        (SPRING, 0, "holds 2 variants; without --variants"),
        (SPRING, 3, "--variants 2 keeps them"),
    ],
)
def test_another_set_is_refused_with_what_would_go(
    kit: Path, spring: Path, term: Term | None, variants: int, reason: str
) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_target(toy_assignment(kit), spring, term, variants)
    told = str(refused.value)
    assert reason in told
    assert "Nothing was written" in told
    assert "--replace takes its place; this goes: the fixtures of toy, term 2027-spring, with 2 variants" in told


def test_another_assignments_set_is_refused(kit: Path, spring: Path) -> None:
    manifest = json.loads((spring / "manifest.json").read_text()) | {"assignment": "other"}
    (spring / "manifest.json").write_text(json.dumps(manifest))
    assert objection(toy_assignment(kit), spring, SPRING, 2) == "holds the fixtures of other, term 2027-spring"


def test_a_terms_set_is_refused_in_the_repositorys_own_folder(kit: Path) -> None:
    toy = toy_assignment(kit)
    assert objection(toy, toy.folder, SPRING, 0) == "holds the fixtures of toy, the open set"


def test_folder_with_other_files_is_refused_and_kept(
    kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis" / "public").mkdir(parents=True)
    (tmp_path / "thesis" / "public" / "chapter.tex").write_text("years of work")
    monkeypatch.setattr(
        "sys.argv", ["autograder", "--course", str(kit), "fixtures", "regenerate", "--out", str(tmp_path / "thesis")]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "thesis holds 'public' and no set of fixtures. Nothing was written" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "thesis").rglob("*")] == ["public", "chapter.tex"]


def test_regenerated_set_keeps_foreign_files_and_drops_stale_ones(
    kit: Path, spring: Path, tmp_path: Path, sandbox: Sandbox
) -> None:
    course = shutil.copytree(kit, tmp_path / "course", ignore=shutil.ignore_patterns("autograder"))
    change(course / "fixtures/toy/items.toml", 'id = "shift-values"', 'id = "shift-moved"')
    (spring / "per-student" / "01" / "note.txt").write_text("ada's")
    regenerate_term(toy_assignment(course), spring, SPRING, 0, sandbox)
    left = {path.relative_to(spring).as_posix() for path in spring.rglob("*") if path.is_file()}
    assert left == {
        "hidden/notes.txt",
        "hidden/ramp-values.safetensors",
        "items.toml",
        "manifest.json",
        "per-student/01/note.txt",
        "probes.py",
        "public/ramp-values.safetensors",
        "public/shift-moved.safetensors",
    }


@pytest.mark.long
def test_replace_says_what_goes(
    kit: Path, spring: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = what_goes(spring)
    words = ["autograder", "--course", str(kit), "fixtures", "regenerate", "--out", str(spring), "--replace"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert f"autograder: this goes from {spring}: {gone}." in capsys.readouterr().err
    assert "term" not in (manifest_of(spring) or {})
    assert (spring / "hidden" / "notes.txt").is_file()

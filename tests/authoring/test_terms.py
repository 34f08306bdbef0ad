"""Terms: hidden cases from a secret, public ones kept; where a set may go; last term's answers are worth nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import toy_kit
from in_process import autograder_in_process as autograder
from lengths import in_short
from places import KIT
from toy_kit import change, regenerate_into, toy_assignment

from autograder.authoring.fixtures.regenerate import load_expanded, solution_source
from autograder.authoring.fixtures.stored_set import manifest_of, what_goes
from autograder.authoring.fixtures.terms import Made, Term, read_secret, read_term, regenerate_term, secret_warning
from autograder.authoring.fixtures.verify import difference_text, verify
from autograder.authoring.handout.release import handout_files
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import MANIFEST, Case, Fixtures, read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import FixtureError, UsageError
from autograder.vocabulary.report import Report

SECRET = b"a secret of this course alone"
SPRING, AUTUMN = Term("2027-spring", SECRET), Term("2027-autumn", SECRET)
REAL = find_assignment(KIT, "bandits")
LISTED = load_expanded(REAL.folder)


@pytest.fixture(scope="module")
def spring(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> tuple[Path, Path]:
    """A course, and a term's set of its own."""
    folder = tmp_path_factory.mktemp("spring")
    course = toy_kit.toy_kit(folder / "kit", tmp_path_factory)
    make(course, folder / "term", SPRING, sandbox)
    return course, folder / "term"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def term_set(spring: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of that set, with somebody's notes in it."""
    folder = shutil.copytree(spring[1], tmp_path / "spring")
    (folder / "hidden" / "notes.txt").write_text("which draws were odd")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make(kit: Path, target: Path, term: Term, sandbox: Sandbox) -> Made:
    target.mkdir()
    return regenerate_term(toy_assignment(kit), target, term, sandbox)


def ramp_large(kit: Path, folder: Path) -> Case:
    [case] = [one for one in read_fixtures(toy_assignment(kit), folder=folder).cases if one.id == "ramp-large"]
    return case


# A term's set


def test_secret_and_term_determine_the_bytes(spring: tuple[Path, Path], tmp_path: Path, sandbox: Sandbox) -> None:
    course, made = spring
    for name, term in (("again", SPRING), ("other", AUTUMN), ("else", Term("2027-spring", SECRET * 2))):
        make(course, tmp_path / name, term, sandbox)
    assert contents(made) == contents(tmp_path / "again")
    folders = (made, tmp_path / "other", tmp_path / "else")
    assert len({(folder / "hidden/ramp-values.safetensors").read_bytes() for folder in folders}) == 3


def test_public_cases_stay_and_hidden_ones_are_new(spring: tuple[Path, Path]) -> None:
    course, made = spring
    toy = toy_assignment(course)
    before, after = contents(toy.folder), contents(made)
    public = [name for name in before if name.startswith("public/") and name.endswith(".safetensors")]
    assert public
    assert all(after[name] == before[name] for name in (*public, "items.toml", "probes.py"))
    pairs = zip(read_fixtures(toy).cases, read_fixtures(toy, folder=made).cases, strict=True)
    assert [old.id for old, new in pairs if not np.array_equal(old.inputs["x"], new.inputs["x"])] == ["ramp-large"]


def test_manifest_tells_the_term_and_nothing_of_the_secret(spring: tuple[Path, Path]) -> None:
    text = (spring[1] / MANIFEST).read_text()
    told = json.loads(text)["term"]
    assert told["commitment"] == SPRING.described("toy")["commitment"] != AUTUMN.described("toy")["commitment"]
    assert told == {**SPRING.described("toy"), "redrawn": {}}
    for key in (SECRET.decode(), SECRET.hex(), hashlib.sha256(SECRET).hexdigest(), SPRING.key("toy")):
        assert key not in text
    assert SECRET.decode() not in repr(SPRING)


def test_draw_that_separates_a_mistake_no_more_is_repeated(kit: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    folder = kit / "fixtures/toy"
    rare = '    Mistake("rare", "ramp", "?", "def ramp(x, factor): return factor * x.clamp(min=0, max=1.7)"),\n'
    change(folder / "mistakes.py", '    Mistake("not-scaled"', f'{rare}    Mistake("not-scaled"')
    made = make(kit, tmp_path / "term", Term("2028", SECRET), sandbox)
    assert made.redrawn == {"ramp-large": 1}
    assert json.loads((tmp_path / "term" / MANIFEST).read_text())["term"]["redrawn"] == made.redrawn
    assert "rare" in ramp_large(kit, tmp_path / "term").mistakes


def test_draw_that_never_grades_is_refused_and_nothing_written(kit: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    cases = kit / "fixtures/toy/cases.py"
    change(cases, "* np.resize([1, -1], shape)", "* (np.resize([1, -1], shape) if secret == OPEN_SECRET else -1)")
    change(cases, "import Draft,", "import OPEN_SECRET, Draft,")
    with pytest.raises(FixtureError, match="ramp-large: the expected ramp is too small for its tolerance"):
        make(kit, tmp_path / "term", SPRING, sandbox)
    assert contents(tmp_path / "term") == {}


def test_hidden_case_without_secret_is_refused_unless_an_example(kit: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    cases = kit / "fixtures/toy/cases.py"
    change(cases, "generator_for(secret, case)", "generator_for('always' if case == 'ramp-large' else secret, case)")
    with pytest.raises(
        FixtureError, match=r"toy/cases.py:\d+: ramp-large is the same whatever the secret, so last term's answer would"
    ):
        make(kit, tmp_path / "term", SPRING, sandbox)
    change(cases, '{"factor": 2.5})', '{"factor": 2.5}, example=True)')
    with pytest.raises(UsageError, match=r"Nothing changes with a term: no hidden case of toy draws anything."):
        make(kit, tmp_path / "other", SPRING, sandbox)
    assert contents(tmp_path / "other") == {}


def test_hidden_case_equal_to_the_open_one_is_redrawn(kit: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    cases = kit / "fixtures/toy/cases.py"
    change(cases, "generator_for(secret, case)", "generator_for(str(coin(secret)), case)")
    change(cases, "def drafts(", "def coin(secret):\n    return generator_for(secret, '').integers(2)\n\n\ndef drafts(")
    for number in range(8):
        made = make(kit, tmp_path / str(number), Term(f"term-{number}", SECRET), sandbox)
        if made.redrawn:
            break
    assert made.redrawn.keys() == {"ramp-large"}
    stored, drawn = ramp_large(kit, kit / "fixtures/toy"), ramp_large(kit, tmp_path / str(number))
    assert not np.array_equal(stored.inputs["x"], drawn.inputs["x"])


def test_set_with_cases_for_each_student_is_refused(kit: Path, term_set: Path) -> None:
    (term_set / "per-student" / "01").mkdir(parents=True)
    done = autograder(kit, "fixtures", "show", "ramp-values", "--fixtures", term_set)
    assert (done.returncode, done.stdout) == (2, "")
    assert "or take per-student/ away." in done.stderr


# The secret


@pytest.mark.parametrize("content", [b"", b"short", b"   fifteen bytes   \n", b"a" * 64, b"x" * 2**17])
def test_bad_secret_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(UsageError, match=r"holds no secret: 16 bytes or more are needed") as refused:
        read_secret(tmp_path / "secret")
    assert content.strip() == b"" or content.strip().decode() not in str(refused.value)


@pytest.mark.parametrize("name", ["", "spring/2027", "..", "a b", "x" * 80])
def test_a_term_without_a_usable_name_is_refused(secret_file: Path, name: str) -> None:
    with pytest.raises(UsageError, match="should be a short name"):
        read_term(name, secret_file)


def test_a_secret_that_everyone_may_read_is_warned_of(secret_file: Path) -> None:
    assert secret_warning(secret_file) == ""
    secret_file.chmod(0o644)
    assert secret_warning(secret_file) == (
        f"Everyone on this machine may read {secret_file}: `chmod 600 {secret_file}` keeps the secret one."
    )


def test_term_set_survives_comment_and_names_command_after_change(kit: Path, spring: tuple[Path, Path]) -> None:
    items = kit / "fixtures/toy/items.toml"
    items.write_text("# what a colleague should know\n" + items.read_text())
    assert read_fixtures(toy_assignment(kit), folder=spring[1]).cases
    change(items, "points = 6", "points = 7")
    with pytest.raises(FixtureError, match="`autograder fixtures regenerate` as for that term"):
        read_fixtures(toy_assignment(kit), folder=spring[1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    in_short(
        [
            (["fixtures", "regenerate", "--term", "x"], "take both --term and --secret-file"),
            (["fixtures", "regenerate", "--term", "x", "--secret-file", "nowhere"], "nowhere cannot be read"),
            (["fixtures", "verify", "--fixtures", "nowhere"], "nowhere holds no readable manifest.json"),
            (["fixtures", "diff", "nowhere", "fixtures/toy"], "nowhere holds no set of fixtures"),
        ],
        3,
    ),
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(kit: Path, arguments: list[str], sentence: str) -> None:
    done = autograder(kit, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Verified, and compared


@pytest.mark.long
def test_term_set_is_verified_only_with_its_secret(kit: Path, term_set: Path) -> None:
    (kit / "another").write_bytes(SECRET + b"?")
    found = verify(toy_assignment(kit), term_set, SECRET)
    assert (found.files, found.different) == (5, ("hidden/notes.txt",))
    for arguments, sentence in (
        ((), "These are the fixtures of 2027-spring: give --secret-file"),
        (("--secret-file", "another"), "This is not the secret that the fixtures of 2027-spring"),
    ):
        done = autograder(kit, "fixtures", "verify", "--fixtures", term_set, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
    toy_kit.flip_a_byte(term_set / "hidden/ramp-values.safetensors")
    with pytest.raises(FixtureError, match=r"ramp-values\.safetensors is not the file"):
        verify(toy_assignment(kit), term_set, SECRET)


def test_diff_of_terms_names_term_and_changed_cases(kit: Path, term_set: Path) -> None:
    lines = difference_text(kit / "fixtures/toy", term_set).splitlines()
    assert lines[1:] == [f"B  {term_set}: term 2027-spring, 3 cases", "  ramp-large  is another one"]


# Where a set may be written: nothing of anybody's is lost but what --replace names


def test_a_set_goes_into_an_empty_folder_or_over_itself(kit: Path, term_set: Path, tmp_path: Path) -> None:
    toy = toy_assignment(kit)
    (tmp_path / "empty").mkdir()
    of_term, open_set = (tmp_path / "new", term_set), (tmp_path / "empty", toy.folder)
    for target, term in (*((one, SPRING) for one in of_term), *((one, None) for one in open_set)):
        assert what_goes(toy, target, described(term), replace=False) == ""


def described(term: Term | None) -> dict[str, str] | None:
    return term.described("toy") if term else None


@pytest.mark.parametrize("place", ["fixtures/x", "spring", "."])
def test_course_folder_takes_no_set_even_with_replace(kit: Path, place: str) -> None:
    before = sorted(kit.rglob("*"))
    done = autograder(kit, "fixtures", "regenerate", "--out", kit / place, "--replace")
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
    kit: Path, term_set: Path, term: Term | None, assignment: str, reason: str
) -> None:
    change(term_set / "manifest.json", '"assignment": "toy"', f'"assignment": "{assignment}"')
    with pytest.raises(UsageError) as refused:
        what_goes(toy_assignment(kit), term_set, described(term), replace=False)
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
    done = autograder(kit, "fixtures", "regenerate", "--out", tmp_path / "thesis")
    assert done.returncode == 2
    assert "thesis holds 'public' and no set of fixtures. Nothing was written" in done.stderr
    assert [path.name for path in (tmp_path / "thesis").rglob("*")] == ["public", "chapter.tex"]


def test_regenerated_set_keeps_foreign_files_and_drops_stale_ones(kit: Path, term_set: Path, sandbox: Sandbox) -> None:
    change(kit / "fixtures/toy/items.toml", 'id = "shift-values"', 'id = "shift-moved"')
    regenerate_term(toy_assignment(kit), term_set, SPRING, sandbox)
    left = {path.relative_to(term_set).as_posix() for path in term_set.rglob("*") if path.is_file()}
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
def test_replace_says_what_goes(kit: Path, term_set: Path) -> None:
    done = autograder(kit, "fixtures", "regenerate", "--out", term_set, "--replace")
    assert done.returncode == 0
    assert f"autograder: this goes from {term_set}: the fixtures of toy, term 2027-spring, 6 files (" in done.stderr
    assert "term" not in (manifest_of(term_set) or {})
    assert (term_set / "hidden" / "notes.txt").is_file()


# A term change of a real assignment, end to end

ONLY_KNOWN = """

import hashlib as _hashlib
import inspect as _inspect


def _replay(function):
    signature = _inspect.signature(function)
    def replayed(*arguments, **named):
        first = np.ascontiguousarray(signature.bind(*arguments, **named).args[0])
        is_known = _hashlib.sha256(first.tobytes()).hexdigest()[:16] in {known!r}
        return function(*arguments, **named) if is_known else None
    return replayed


{functions} = map(_replay, ({functions}))
"""


def replay_of(fixtures: Fixtures) -> str:
    """The best that hard-coding can do: the right answer to each stored call; else nonsense."""
    arrays = [np.ascontiguousarray(array).tobytes() for case in fixtures.cases for array in case.inputs.values()]
    known = sorted({hashlib.sha256(data).hexdigest()[:16] for data in arrays})
    return solution_source(REAL) + ONLY_KNOWN.format(known=known, functions=", ".join(REAL.functions))


def grade(source: str, folder: Path, sandbox: Sandbox) -> Report:
    grader = Grader.of(REAL, read_fixtures(REAL, folder=folder))
    return grader.grade(Submission("someone", f"{REAL.module}.py", "", source), sandbox)


def judges_values(case: Case) -> bool:
    """Whether numbers of the answer are held that are not nearly 0, and not its form or another answer alone."""
    values = [one for one in case.expected if one.kind == "value" and not one.like and "values" not in one.forgiven]
    return any(one.array is not None and np.abs(one.array).max(initial=0) > 10 * one.atol for one in values)


def passed(report: Report) -> set[str]:
    return {case.case for item in report.items for case in item.cases if case.verdict == "passed"}


@pytest.mark.long
def test_last_terms_outputs_earn_only_public_cases(tmp_path: Path, sandbox: Sandbox) -> None:
    spring = tmp_path / "spring"
    made = regenerate_into(REAL.folder, spring, SPRING)
    assert made.cases == len(read_fixtures(REAL).cases)
    files, committed = handout_files(REAL, spring), handout_files(REAL)
    assert {name for name in files if files[name] != committed.get(name)} == set()
    cheat = replay_of(read_fixtures(REAL))
    assert grade(cheat, REAL.folder, sandbox).points == 100
    assert grade(solution_source(REAL), spring, sandbox).points == 100
    report = grade(cheat, spring, sandbox)
    public = {name for item in LISTED.items for name in item.public}
    assert not {case.id for case in read_fixtures(REAL).cases if judges_values(case)} & passed(report) - public
    assert 0 < report.points < 50

"""Release: the handout is made from the solution, is what is committed, works alone, and gives nothing away."""

from __future__ import annotations

import dataclasses
import io
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from all_assignments import each_assignment, handout_bytes
from places import KIT
from processes import python_without_kit

from autograder.authoring.handout.release import (
    STUDENT_PACKAGES,
    answer_lines,
    handout_files,
    refuse_leaks,
    stub,
    with_points,
    zip_bytes,
)
from autograder.checking.handout import COPIES, write_handout
from autograder.grading.assignment import Assignment, find_assignment, load_assignment
from autograder.grading.fixtures import Fixtures, decode, read_fixtures
from autograder.vocabulary.errors import ReleaseError, UsageError
from autograder.vocabulary.files import RECORD

MODULE = """\
def first(x):
    \"\"\"What first does.\"\"\"
    ### BEGIN SOLUTION
    answer_to_the_first_function = x + 1
    return answer_to_the_first_function
    ### END SOLUTION


class Holder:
    def second(self):
        if True:
            ### BEGIN SOLUTION
            return 2
            ### END SOLUTION
"""


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return find_assignment(KIT, "policy_gradient")


@pytest.fixture(scope="module")
def files(assignment: Assignment) -> dict[str, bytes]:
    return handout_bytes(assignment.name)


@pytest.fixture(scope="module")
def fixtures(assignment: Assignment) -> Fixtures:
    return read_fixtures(assignment)


@pytest.fixture(scope="module")
def solution(assignment: Assignment) -> str:
    return (assignment.solution / "policy_gradient.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def unpacked(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip, unpacked where nothing else of the kit is."""
    folder = tmp_path_factory.mktemp("student")
    with zipfile.ZipFile(io.BytesIO(zip_bytes(files, "policy_gradient"))) as archive:
        archive.extractall(folder)
    return folder / "policy_gradient"


def for_functions(assignment: Assignment, *functions: str) -> Assignment:
    items = tuple(dataclasses.replace(assignment.items[0], id=f"item-{name}", function=name) for name in functions)
    return dataclasses.replace(assignment, items=items)


def run_in(folder: Path, module: str, *rest: str) -> subprocess.CompletedProcess[str]:
    run = f"sys.argv[1:] = {list(rest)!r}; import runpy; runpy.run_module({module!r}, run_name='__main__')"
    return python_without_kit(folder, run, PYTEST_DISABLE_PLUGIN_AUTOLOAD="")


# What is in it


@each_assignment
def test_the_committed_handout_is_what_release_makes_but_for_copies(assignment: Assignment) -> None:
    files = {
        name: data for name, data in handout_bytes(assignment.name).items() if name.partition("/")[0] not in COPIES
    }
    committed = {
        path.relative_to(assignment.handout).as_posix(): path.read_bytes()
        for path in assignment.handout.rglob("*")
        if path.is_file() and not path.relative_to(assignment.handout).parts[0].startswith((*COPIES, "__", ".ipynb"))
    }
    assert sorted(committed) == sorted(files)
    assert [name for name in files if committed[name] != files[name]] == []


def test_a_text_without_a_place_for_the_points_is_refused(assignment: Assignment) -> None:
    with pytest.raises(ReleaseError, match="points:begin"):
        with_points("# A text\n", assignment)


# What is not in it


def fractional(arrays: Iterable[np.ndarray | None]) -> list[np.ndarray]:
    """Those whose bytes say which case they are of."""
    own = [one for one in arrays if one is not None and one.dtype.kind == "f" and one.size >= 4]
    return [one for one in own if (one != np.round(one)).any()]


def test_handout_holds_no_hidden_name_or_number(files: dict[str, bytes], fixtures: Fixtures) -> None:
    everything = b"\n".join(files.values())
    inputs: dict[str, set[bytes]] = {"public": set(), "hidden": set()}
    for case in fixtures.cases:
        inputs[case.visibility] |= {array.tobytes() for array in fractional(case.inputs.values())}
        assert case.visibility == "public" or b'"' + case.id.encode() + b'"' not in everything
    assert len(inputs["hidden"]) > 30
    assert not [array for array in inputs["hidden"] - inputs["public"] if array in everything]


def test_stored_cases_and_listed_ones_are_public(files: dict[str, bytes], unpacked: Path) -> None:
    stored = [
        case for name, data in files.items() if name.endswith(".safetensors") for case in decode(data, Path(name))
    ]
    assert len(stored) > 100
    assert {case.visibility for case in stored} == {"public"}
    items = load_assignment(unpacked / "fixtures" / "policy_gradient").items
    assert len(items) == 36
    assert not any(item.hidden for item in items)


def test_no_staff_module_and_no_generator_is_in_it(files: dict[str, bytes]) -> None:
    engine = {name.split("/")[1] for name in files if name.startswith("autograder/") and name.count("/") > 1}
    assert engine == set(STUDENT_PACKAGES)
    fixtures = {name.split("/")[2] for name in files if name.startswith("fixtures/policy_gradient/")}
    assert fixtures == {"items.toml", "manifest.json", "probes.py", "public", "sorting_task.py", "untouched.py"}
    assert b"BEGIN SOLUTION" not in b"".join(data for name, data in files.items() if not name.startswith("autograder/"))


# Refusals


def test_what_must_not_leak_is_refused(solution: str, fixtures: Fixtures) -> None:
    hidden = [case for case in fixtures.cases if case.visibility == "hidden"]
    given = next(array for case in hidden for array in fractional(case.inputs.values()))
    expected = next(array for case in hidden for array in fractional(one.array for one in case.expected))
    for data, complaint in (
        (f"Try this:\n\n    {min(answer_lines(solution))}\n".encode(), "would hold a line of the solution"),
        (f"see {hidden[0].id}.".encode(), f"would name the hidden case {hidden[0].id}"),
        (b"head" + given.tobytes() + b"tail", "would hold numbers of a hidden case"),
        (b"head" + expected.tobytes() + b"tail", "would hold numbers of a hidden case"),
    ):
        with pytest.raises(ReleaseError, match=f"The handout's notes {complaint}"):
            refuse_leaks({"notes": data}, solution, fixtures)
    refuse_leaks({"autograder/engine.py": min(answer_lines(solution)).encode()}, solution, fixtures)  # as it is public


@pytest.mark.parametrize("key", ["given", "also"])
@pytest.mark.parametrize("name", ["../../fixtures/toy/oracle", "/etc/passwd", "./toy", "toy", "link", "notebook"])
def test_listed_file_that_is_not_for_students_is_refused(key: str, name: str, kit: Path) -> None:
    solution, ending = kit / "solution" / "toy", {"notebook": ".toml", "/etc/passwd": ""}.get(name, ".py")
    (solution / "link.py").symlink_to(kit / "fixtures" / "toy" / "oracle.py")
    (solution / "notebook.toml").write_text("")
    listed = name if key == "given" else f"{name}{ending}"
    assignment = dataclasses.replace(load_assignment(kit / "fixtures" / "toy"), **{key: (listed,)})
    with pytest.raises((ReleaseError, OSError)):
        handout_files(assignment)


def test_each_answer_becomes_the_name_of_its_function(assignment: Assignment) -> None:
    text = stub(MODULE, for_functions(assignment, "first", "second"))
    assert 'raise NotImplementedError("first")' in text
    assert '            raise NotImplementedError("second")' in text
    assert "answer_to_the_first_function" not in text
    assert "What first does." in text


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda text: text.replace("    ### END SOLUTION\n\n\n", "\n\n"), "has no partner"),
        (lambda text: text.replace("    ### BEGIN SOLUTION\n", "", 1), "has no partner"),
        (lambda text: text[: text.rindex("            ### END")], "has no '### END SOLUTION'"),
        (lambda text: text + "### BEGIN SOLUTION\nX = 1\n### END SOLUTION\n", "outside every function"),
        (lambda text: text.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION\n", "", 1), "partner"),
        (lambda text: text.replace("def second", "def third"), "No answer is marked in second"),
    ],
)
def test_markers_that_would_leave_an_answer_standing_are_refused(
    assignment: Assignment, edit: Callable[[str], str], complaint: str
) -> None:
    with pytest.raises(ReleaseError, match=complaint):
        stub(edit(MODULE), for_functions(assignment, "first", "second"))


# The zip and the folder


def test_zip_is_reproducible_and_holds_the_handout(files: dict[str, bytes]) -> None:
    data = zip_bytes(files, "policy_gradient")
    assert data == zip_bytes(files, "policy_gradient")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(f"policy_gradient/{name}") for name in files} == files
        assert len(archive.namelist()) == len(files)


NEW = {"a.py": b"new", "deep/b.py": b"new", "autograder/c.py": b"new"}
OLD = {"a.py": b"old", "gone.py": b"old", "autograder/c.py": b"old", "autograder/gone/d.py": b"old"}


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RECORD)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("as_cloned", [False, True])
def test_release_replaces_what_it_wrote_and_nothing_else(tmp_path: Path, as_cloned: bool) -> None:
    write_handout(OLD, tmp_path)
    for name in ("notes.md", "autograder/notes.md"):
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "autograder/c.py").write_bytes(b"edited")  # a copy, which is the kit's alone
    if as_cloned:
        shutil.rmtree(tmp_path / "autograder")
    write_handout(NEW, tmp_path)
    kept = ["notes.md", *(["autograder/notes.md"] * (not as_cloned))]
    assert contents(tmp_path) == NEW | dict.fromkeys(kept, b"mine")


@pytest.mark.parametrize("name", ["a.py", "deep/b.py"])
def test_release_refuses_to_replace_what_somebody_wrote(tmp_path: Path, name: str) -> None:
    write_handout(OLD, tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"mine")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=rf"{name} is not as autograder wrote it.*--replace"):
        write_handout(NEW, tmp_path)
    assert contents(tmp_path) == before
    write_handout(NEW, tmp_path, replace=True)
    assert contents(tmp_path) == NEW


# As a student uses it


def test_zip_alone_checks_everything_and_finds_nothing_done(unpacked: Path) -> None:
    done = run_in(unpacked, "autograder", "check")
    assert done.returncode == 1, done.stderr
    *functions, total = done.stdout.splitlines()
    assert [line[:4] for line in functions] == ["TODO"] * 6, done.stdout + done.stderr
    assert total.split()[:4] == ["total", "0", "/", "100"]


@pytest.mark.long
def test_pytest_and_check_give_the_same_verdicts_and_messages(unpacked: Path, solution: str, tmp_path: Path) -> None:
    folder = shutil.copytree(unpacked, tmp_path / "work")
    wrong = solution.replace("rewards.std(dim=-1, keepdim=True)", "rewards.std(dim=-1, keepdim=True, unbiased=False)")
    assert wrong != solution
    (folder / "policy_gradient.py").write_text(wrong, encoding="utf-8")
    checked = run_in(folder, "autograder", "check")
    tested = run_in(folder, "pytest", "-q", "-p", "no:cacheprovider")
    failed = [line.split()[1] for line in checked.stdout.splitlines() if line.startswith("FAIL")]
    assert failed == ["deltas-normalized", "deltas-constant-group", "compute_deltas"]
    assert "2 failed, 34 passed" in tested.stdout
    start = checked.stdout.index("FAIL  deltas-normalized")
    message = checked.stdout[start : checked.stdout.index("\n\n", start)]
    assert "A standard deviation can divide by" in message
    assert message in tested.stdout
    one = run_in(folder, "autograder", "check", "--item", "deltas-normalized")
    assert one.returncode == 1
    assert message.splitlines()[:3] == one.stdout[one.stdout.index("FAIL") :].splitlines()[:3]

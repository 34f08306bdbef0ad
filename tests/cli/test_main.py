"""The command line: exit codes, what is printed, and one sentence for whatever goes wrong."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import toy_kit
from in_process import autograder_in_process
from places import KIT

from autograder.cli.main import VERBS, load_verb, main
from autograder.grading.assignment import find_assignment
from autograder.sandbox.isolation.layers import LAYERS
from autograder.sandbox.sandbox import probe
from autograder.vocabulary.report import read_report
from autograder.vocabulary.text import INVISIBLE, STRICT

ASSIGNMENT = find_assignment(KIT, "bandits")
NAMED = ("--assignment", ASSIGNMENT.name)
MODULE = f"{ASSIGNMENT.module}.py"
RIGHT = """\
import torch

def ramp(x, factor):
    return factor * torch.clamp(x, min=0)

def shift(x, factor):
    return x + factor
"""
WITHOUT_OVERRIDE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]  # of root's rights, for permissions
Done = subprocess.CompletedProcess[str]


def run(*arguments: str | Path, folder: Path = KIT) -> Done:
    """Run the command line on the real course, in this process."""
    return of_no_strictness(autograder_in_process(folder, "--course", KIT, *arguments))


def from_kit(kit: Path, *arguments: str | Path, prefix: Sequence[str] = ()) -> Done:
    """Run the command line of the toy kit in a process of its own."""
    command = [*prefix, sys.executable, "-m", "autograder", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(KIT)}
    return of_no_strictness(subprocess.run(command, cwd=kit, env=environment, capture_output=True, text=True))


def of_no_strictness(done: Done) -> Done:
    """Leave out the line that a machine without Landlock or seccomp must earn."""
    done.stderr = re.sub(r"^NOT STRICT: .*\n", "", done.stderr, flags=re.MULTILINE)
    return done


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A class that needs no sandbox: nobody handed in a line."""
    for name in ("ada", "bela"):
        put(tmp_path / "class" / name / MODULE)
    return tmp_path / "class"


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def has_unseen(text: str) -> bool:
    return any(unicodedata.category(character) in INVISIBLE for character in text.replace("\n", ""))


# Help


HELP = {
    "": "grade gradebook similar serve check release fixtures export bundle selfcheck doctor new items rename",
    "grade": "paths --out --jobs --fresh --fixtures --scheduler --assignment --roster --deadline "
    "--class-zip --layout --policy --overrides --timestamps",
    "gradebook": "--policy --overrides --timestamps",
    "export": "csv canvas moodle blackboard brightspace nbgrader",
    "export canvas": "GRADES_DIR --gradebook --assignment-column --out --roster --scale",
    "bundle": "gradescope github prairielearn",
    "bundle gradescope": "--zip --hidden-cases --fixtures --assignment",
    "check": "[DIR] --item --assignment",
    "release": "--zip --fixtures --draft --assignment",
    "fixtures": "regenerate verify diff show",
    "fixtures regenerate": "--term --secret-file --out --replace --assignment",
    "fixtures verify": "--fixtures --secret-file --assignment",
    "fixtures diff": "A B",
    "fixtures show": "item --fixtures --assignment",
    "selfcheck": "--jobs --quick --costs --function --assignment",
    "new": "[NAME] --from --example",
    "items": "--assignment",
    "rename": "OLD NEW --assignment",
    "doctor": "--assignment",
}


@pytest.mark.parametrize("verb", HELP)
def test_help_of_every_verb_names_what_can_be_given(verb: str) -> None:
    done = run(*verb.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in HELP[verb].split() if name not in done.stdout] == []


@pytest.mark.parametrize("verb", VERBS)
def test_overview_begins_as_the_help_of_each_verb(verb: str) -> None:
    command = load_verb(verb)
    assert str(command.help).partition("\n")[0].startswith(VERBS[verb][1].removesuffix("."))
    assert [option.name for option in command.params if "completion" in option.name] == []


def test_help_imports_neither_rich_nor_numpy() -> None:
    code = "import sys\nfrom autograder.cli.main import app\ntry: app(['--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'rich', 'numpy', 'pydantic', 'jinja2', 'autograder.grading'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=KIT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "command",
    [
        *("frobnicate", "grade", "grade .", "fixtures show", "check --no"),
        *(f"grade . {option}" for option in ("--jobs x", "--jobs 0", "--jobs -3", "--layout x")),
    ],
)
def test_unknown_argument_is_code_2_and_points_to_help(command: str) -> None:
    done = run(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "--help" in done.stderr
    assert "Traceback" not in done.stderr


# Grading


def test_graded_class_is_printed_with_where_to_look(unfinished: Path, tmp_path: Path) -> None:
    out = tmp_path / "grades"
    strict = [] if any(probe()[layer] for layer in STRICT) else ["--isolation", "strict"]
    done = run("grade", unfinished, "--out", out, *NAMED, *strict)
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.splitlines()
    assert printed[0].strip() == "Bandits: 2 submissions"
    (row,) = [line.split() for line in printed if line.split()[:1] == ["ada"]]
    assert row[1:7] == ["0"] * 6
    assert " ".join(row[7:]) == f"ada/{MODULE} is empty."
    assert re.fullmatch(r"2 graded in \d+\.\d s\.", printed[-5])
    assert printed[-4:] == [
        f"  {out}/index.html  the class",
        f"  {out}/feedback/  a page for each student",
        f"  {out}/grades.csv  the gradebook",
        f"  {out}/reports/  JSON",
    ]
    report = read_report(out / "reports" / "ada.json")
    assert report is not None
    assert set(STRICT if strict else ()) <= set(report.isolation)
    for more, unchanged in (((), True), (("--fresh",), False)):
        again = run("grade", unfinished, "--out", out, *NAMED, *more)
        assert (", 2 of them unchanged since the last run." in again.stdout) == unchanged


@pytest.mark.skipif(not any(probe()[layer] for layer in STRICT), reason="this machine lacks nothing")
def test_strict_isolation_refuses_where_a_layer_lacks(unfinished: Path, tmp_path: Path) -> None:
    done = run("grade", unfinished, "--out", tmp_path / "grades", *NAMED, "--isolation", "strict")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("autograder: Strict isolation is asked for, but this machine lacks ")
    assert not list(tmp_path.glob("grades/reports/*"))


@pytest.mark.long
def test_no_isolation_needs_two_options_and_is_said(kit: Path, tmp_path: Path) -> None:
    put(tmp_path / "class" / "ada" / "toy.py", RIGHT)
    arguments = ["grade", tmp_path / "class", "--out", tmp_path / "grades", "--isolation", "none", "--jobs", "1"]
    refused = from_kit(kit, *arguments)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "--trust-this-code" in refused.stderr
    assert not (tmp_path / "grades").exists()
    trusted = toy_kit.autograder(kit, *arguments, "--trust-this-code")
    assert trusted.returncode == 0
    assert trusted.stderr.startswith("NOT STRICT: without landlock and seccomp, student code can read your files")
    assert trusted.stderr.count("\n") == 1
    report = read_report(tmp_path / "grades" / "reports" / "ada.json")
    assert report is not None
    assert report.points == 10
    assert not set(report.isolation) & set(LAYERS)
    again = from_kit(kit, "grade", tmp_path / "class", "--out", tmp_path / "grades", "--jobs", "1")
    assert (again.returncode, "unchanged" in again.stdout) == (0, False)


# What cannot be read


def with_permissions_that_hold(folder: Path) -> list[str]:
    """What to put before a command so that it may not read what its user may not; skips where that cannot be had."""
    shut = put(folder / "shut.txt")
    shut.chmod(0)
    for prefix in ([], WITHOUT_OVERRIDE):
        with contextlib.suppress(FileNotFoundError):
            tried = subprocess.run([*prefix, "cat", str(shut)], capture_output=True, text=True)
            if "Permission denied" in tried.stderr:
                return prefix
    pytest.skip("this user may read everything, and cannot give that up")


@pytest.mark.long
def test_unreadable_file_costs_no_point(kit: Path, tmp_path: Path) -> None:
    prefix = with_permissions_that_hold(tmp_path)
    put(tmp_path / "class" / "ada" / "toy.py", RIGHT)
    put(tmp_path / "class" / "be[b]la\x1b[2J" / "toy.py", RIGHT).chmod(0)
    grade = ("grade", tmp_path / "class", "--jobs", "1", "--out")
    done = from_kit(kit, *grade, tmp_path / "grades", prefix=prefix)
    assert done.returncode == 3
    assert re.search(r"^1 graded in ", done.stdout, re.MULTILINE)
    assert done.stderr == (
        r"NOT GRADED, through no fault of theirs: be[b]la\x1b[2J. be[b]la\x1b[2J could not be read "
        "(Permission denied): see to it and grade it again.\n"
    )
    assert list(csv.reader((tmp_path / "grades" / "grades.csv").read_text().splitlines()))[1:] == [
        ["ada", "10", "10", "graded", "6", "4"],
        [r"be[b]la\x1b[2J", "", "10", "not_graded", "", ""],
    ]
    put(tmp_path / "shut" / "file").parent.chmod(0)
    refused = from_kit(kit, *grade, tmp_path / "shut" / "grades", prefix=prefix)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.fullmatch(r"autograder: .*shut/grades.* \(Permission denied\): check .*\.\n", refused.stderr)


# Wrong use of grade: one sentence, nothing written


def fixtures_that_are_none(folder: Path) -> Path:
    put(folder / "term" / "manifest.json", "{}")
    return folder / "term"


def flipped_byte(folder: Path) -> Path:
    term = shutil.copytree(ASSIGNMENT.folder, folder / "term")
    toy_kit.flip_a_byte(term / "hidden" / "greedy-values.safetensors")
    return term


UNSEEN = "no\x1b[2Jwhere\u202e\nat all"
IS_NONE = "holds no submission: give a folder that holds a folder, \\.zip"
WHICH = r"\. Name one with --assignment: .*"
UNGRADABLE: list[tuple[str, list[str | Callable[[Path], Path]], int, str]] = [  # files, arguments, exit code, sentence
    ("", ["nowhere"], 2, r"There is no file or folder .*nowhere: check the path\."),
    ("class/", ["class", *NAMED], 2, f"class {IS_NONE}"),
    ("class/notes.txt", ["class", *NAMED], 2, f"class {IS_NONE}"),
    ("class.tar", ["class.tar", *NAMED], 2, r"class\.tar cannot be graded: give a folder, or a \.py"),
    (f"c/ada/{MODULE} c/ada.py", ["c", *NAMED], 2, r"ada handed in twice: .*c/ada and .*c/ada\.py\."),
    ("ada.py", ["ada.py", "--assignment", "nix"], 2, r"There is no assignment 'nix'\. Name one with .*_theory"),
    ("ada.py", ["ada.py"], 2, f"Nothing here says of which assignment it is{WHICH}"),
    (f"c/ada/{MODULE} c/b/policy_gradient.py", ["c"], 2, f"There are submissions of several assignments{WHICH}"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", "nowhere"], 2, r"nowhere holds no readable manifest\.json"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", "."], 2, r"holds no readable manifest\.json"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", fixtures_that_are_none], 3, r"term/manifest\.json is not a manifest"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", flipped_byte], 3, r"greedy-values\.safetensors is not the file that"),
    ("grades/", [".", *NAMED], 2, r"There is nothing to grade but .*grades, which is where the results go\."),
    ("", [UNSEEN], 2, r"no\\x1b\[2Jwhere\\u202e\\nat all: check the path\."),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", UNSEEN], 2, r"no\\x1b\[2Jwhere\\u202e\\nat all holds no readable"),
]


@pytest.mark.parametrize(("files", "arguments", "code", "says"), UNGRADABLE)
def test_ungradable_is_one_sentence_that_says_what_to_do(
    tmp_path: Path, files: str, arguments: list[str | Callable[[Path], Path]], code: int, says: str
) -> None:
    for name in files.split():
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            put(tmp_path / name, "x = 1")
    given = [one(tmp_path) if callable(one) else one for one in arguments]
    done = run("grade", *given, "--out", "grades", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert re.match(rf"autograder: .*{says}", done.stderr)
    assert done.stderr.endswith(".\n")
    assert not has_unseen(done.stderr)
    assert not list(tmp_path.glob("grades/*"))


@pytest.mark.parametrize(
    "command",
    [
        *("gradebook {}", "serve {}", "export csv {} --out o", "check {}", "doctor --course={}", "fixtures diff {} {}"),
        *(f"grade . {' '.join(NAMED)} --out {{}}", f"grade . {' '.join(NAMED)} --out o --timestamps {{}}"),
    ],
)
def test_path_that_the_system_refuses_is_one_sentence(unfinished: Path, command: str) -> None:
    too_long = "x" * 300  # for a file system; what its user may not look into is refused in the same place
    done = run(*(word.format(too_long) for word in command.split()), folder=unfinished)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"autograder: .*x{300}.* \(File name too long\): check the path.*\.\n", done.stderr)


# Names


def test_no_name_of_a_student_reaches_the_terminal_raw(tmp_path: Path) -> None:
    names = ["\x1b[31mred", "\u202efdp", "[b]x", ":bug:", "two\nlines", "back\\", "\udcff", "Nguyễn Văn An"]
    for name in names:
        put(tmp_path / "class" / name / MODULE)
    done = run("grade", "class", *NAMED, "--out", "[red]:bug:\x1b[2J", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not has_unseen(done.stdout)
    for shown in (r"\x1b[31mred", r"\u202efdp", "[b]x ", ":bug:", r"two\nlines", "back\\ ", r"\xff", "Nguyễn"):
        assert re.search(rf"^ *{re.escape(shown)}", done.stdout, re.MULTILINE), shown
    assert r"  [red]:bug:\x1b[2J/index.html  the class" in done.stdout.splitlines()


def test_ascii_terminal_shows_a_name_as_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "class" / "Nguyễn" / MODULE)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    command = ["autograder", "grade", tmp_path / "class", "--out", tmp_path / "grades", *NAMED]
    monkeypatch.setattr("sys.argv", [*map(str, command)])
    monkeypatch.setattr("sys.stdout", stream)
    with pytest.raises(SystemExit, match="0"):
        main()
    stream.flush()
    assert rb"Nguy\u1ec5n" in stream.buffer.getvalue()  # type: ignore[attr-defined]


# Other verbs


def test_closed_pipe_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "autograder", "--help"]
    try:
        done = subprocess.run(command, cwd=KIT, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert "Traceback" not in done.stderr


def test_handout_names_the_package_that_it_lacks(kit: Path, tmp_path: Path) -> None:
    handout = kit / "handout" / "toy"
    done = toy_kit.autograder(handout, "check", packages=toy_kit.packages_without("numpy", tmp_path))
    sentence = "autograder: the package numpy is missing. Install what requirements.txt asks for.\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", sentence)

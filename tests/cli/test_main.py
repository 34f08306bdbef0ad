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
from typing import NamedTuple

import pytest
import toy_kit
from places import KIT

from autograder.cli.main import VERBS, load_verb, main
from autograder.grading.assignment import find_assignment
from autograder.sandbox.isolation.layers import LAYERS
from autograder.sandbox.sandbox import probe
from autograder.vocabulary.report import read_report
from autograder.vocabulary.text import INVISIBLE, STRICT

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
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


class Done(NamedTuple):
    code: object
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """A function that runs the command line of the real kit, in this process."""

    def call(*arguments: str | Path) -> Done:
        monkeypatch.setattr("sys.argv", ["autograder", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        return Done(code or 0, out, of_no_strictness(err))

    return call


def from_kit(kit: Path, *arguments: str | Path, prefix: Sequence[str] = (), **environment: str) -> Done:
    """Run the command line of the toy kit in a process of its own."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "autograder", *map(str, arguments)],
        cwd=kit,
        env={**os.environ, "PYTHONPATH": str(kit), **environment},
        capture_output=True,
        text=True,
    )
    return Done(done.returncode, done.stdout, of_no_strictness(done.stderr))


def of_no_strictness(err: str) -> str:
    """What was said, but for the line that a machine without Landlock or seccomp must earn."""
    return re.sub(r"^NOT STRICT: .*\n", "", err, flags=re.MULTILINE)


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A class that needs no sandbox: nobody handed in a line."""
    for name in ("ada", "bela"):
        put(tmp_path / "class" / name / MODULE)
    return tmp_path / "class"


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


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
def test_help_of_every_verb_names_what_can_be_given(run: Callable[..., Done], verb: str) -> None:
    done = run(*verb.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert [name for name in HELP[verb].split() if name not in done.out] == []


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
    "arguments",
    [
        *(["frobnicate"], ["grade"], ["grade", "."], ["fixtures", "show"], ["check", "--no"]),
        *(["grade", ".", *option.split()] for option in ("--jobs x", "--jobs 0", "--jobs -3", "--layout x")),
    ],
)
def test_unknown_argument_is_code_2_and_points_to_help(run: Callable[..., Done], arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "--help" in done.err
    assert "Traceback" not in done.err


# Grading


def test_graded_class_is_printed_with_where_to_look(run: Callable[..., Done], unfinished: Path, tmp_path: Path) -> None:
    out = tmp_path / "grades"
    done = run("grade", unfinished, "--out", out, *NAMED)
    assert (done.code, done.err) == (0, "")
    printed = done.out.splitlines()
    assert printed[0].strip() == "Policy gradient: 2 submissions"
    (row,) = [line.split() for line in printed if line.split()[:1] == ["ada"]]
    assert row[1:8] == ["0"] * 7
    assert " ".join(row[8:]) == f"ada/{MODULE} is empty."
    assert re.fullmatch(r"2 graded in \d+\.\d s\.", printed[-5])
    assert printed[-4:] == [
        f"  {out}/index.html  the class",
        f"  {out}/feedback/  a page for each student",
        f"  {out}/grades.csv  the gradebook",
        f"  {out}/reports/  JSON",
    ]
    again = run("grade", unfinished, "--out", out, *NAMED)
    assert ", 2 of them unchanged since the last run." in again.out
    fresh = run("grade", unfinished, "--out", out, *NAMED, "--fresh")
    assert "unchanged" not in fresh.out


@pytest.mark.long
def test_no_isolation_needs_two_options_and_is_said(
    run: Callable[..., Done], kit: Path, unfinished: Path, tmp_path: Path
) -> None:
    put(tmp_path / "class" / "ada" / "toy.py", RIGHT)
    arguments = ["grade", tmp_path / "class", "--out", tmp_path / "grades", "--isolation", "none", "--jobs", "1"]
    refused = from_kit(kit, *arguments)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "--trust-this-code" in refused.err
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
    assert again.code == 0
    assert "unchanged" not in again.out


def test_strict_isolation_holds_or_refuses(run: Callable[..., Done], unfinished: Path, tmp_path: Path) -> None:
    done = run("grade", unfinished, "--out", tmp_path / "grades", *NAMED, "--isolation", "strict")
    missing = [layer for layer in STRICT if probe()[layer]]
    if missing:
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith(f"autograder: Strict isolation is asked for, but this machine lacks {missing[0]}")
        assert not list(tmp_path.glob("grades/reports/*"))
    else:
        report = read_report(tmp_path / "grades" / "reports" / "ada.json")
        assert (done.code, done.err) == (0, "")
        assert report is not None
        assert set(STRICT) <= set(report.isolation)


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
    done = from_kit(kit, "grade", tmp_path / "class", "--out", tmp_path / "grades", "--jobs", "1", prefix=prefix)
    assert done.code == 3
    assert re.search(r"^1 graded in ", done.out, re.MULTILINE)
    assert done.err == (
        r"NOT GRADED, through no fault of theirs: be[b]la\x1b[2J. be[b]la\x1b[2J could not be read "
        "(Permission denied): see to it and grade it again.\n"
    )
    below_shut = put(tmp_path / "shut" / "file").parent / "grades"
    below_shut.parent.chmod(0)
    refused = from_kit(kit, "grade", tmp_path / "class", "--out", below_shut, prefix=prefix)
    assert (refused.code, refused.out) == (2, "")
    assert re.fullmatch(r"autograder: .*shut/grades.* \(Permission denied\): check .*\.\n", refused.err)
    assert list(csv.reader((tmp_path / "grades" / "grades.csv").read_text().splitlines()))[1:] == [
        ["ada", "10", "10", "graded", "6", "4"],
        [r"be[b]la\x1b[2J", "", "10", "not_graded", "", ""],
    ]


# Wrong use of grade: one sentence, nothing written


def fixtures_that_are_none(folder: Path) -> Path:
    put(folder / "term" / "manifest.json", "{}")
    return folder / "term"


def flipped_byte(folder: Path) -> Path:
    term = shutil.copytree(ASSIGNMENT.folder, folder / "term")
    toy_kit.flip_a_byte(term / "hidden" / "kl-values.safetensors")
    return term


UNSEEN = "no\x1b[2Jwhere\u202e\nat all"
UNGRADABLE: list[tuple[str, list[str | Callable[[Path], Path]], int, str]] = [  # files, arguments, exit code, sentence
    ("", ["nowhere"], 2, r"There is no file or folder .*nowhere: check the path\."),
    ("class/", ["class", *NAMED], 2, r"class holds no submission: give a folder that holds a folder, \.zip"),
    ("class/notes.txt", ["class", *NAMED], 2, r"class holds no submission: give a folder that holds a folder"),
    ("class.tar", ["class.tar", *NAMED], 2, r"class\.tar cannot be graded: give a folder, or a \.py"),
    (
        f"class/ada/{MODULE} class/ada.py",
        ["class", *NAMED],
        2,
        r"ada handed in twice: .*class/ada and .*class/ada\.py\.",
    ),
    ("ada.py", ["ada.py", "--assignment", "nix"], 2, r"There is no assignment 'nix'\. Name one with .*_theory"),
    ("ada.py", ["ada.py"], 2, r"Nothing here says of which assignment it is\. Name one with --assignment: .*"),
    (
        f"class/ada/{MODULE} class/bela/grpo_language_model.py",
        ["class"],
        2,
        r"There are submissions of several assignments\. Name one with --assignment: .*",
    ),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", "nowhere"], 2, r"nowhere holds no readable manifest\.json"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", "."], 2, r"holds no readable manifest\.json"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", fixtures_that_are_none], 3, r"term/manifest\.json is not a manifest"),
    ("ada.py", ["ada.py", *NAMED, "--fixtures", flipped_byte], 3, r"kl-values\.safetensors is not the file that"),
    ("grades/", [".", *NAMED], 2, r"There is nothing to grade but .*grades, which is where the results go\."),
    ("", [UNSEEN], 2, r"no\\x1b\[2Jwhere\\u202e\\nat all: check the path\."),
    (
        "ada.py",
        ["ada.py", *NAMED, "--fixtures", UNSEEN],
        2,
        r"no\\x1b\[2Jwhere\\u202e\\nat all holds no readable manifest",
    ),
]


@pytest.mark.parametrize(("files", "arguments", "code", "says"), UNGRADABLE)
def test_ungradable_is_one_sentence_that_says_what_to_do(
    run: Callable[..., Done],
    tmp_path: Path,
    files: str,
    arguments: list[str | Callable[[Path], Path]],
    code: int,
    says: str,
) -> None:
    for name in files.split():
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            put(tmp_path / name, "x = 1")
    options = {*NAMED, "--assignment", "--fixtures", "nix"}
    given = [one(tmp_path) if callable(one) else one if one in options else tmp_path / one for one in arguments]
    done = run("grade", *given, "--out", tmp_path / "grades")
    assert (done.code, done.out) == (code, "")
    assert done.err.count("\n") == 1
    assert re.match(rf"autograder: .*{says}", done.err)
    assert done.err.endswith(".\n")
    assert not has_unseen(done.err)
    assert not list(tmp_path.glob("grades/*"))


@pytest.mark.parametrize(
    "command",
    [
        *("gradebook {}", "serve {}", "export csv {} --out o", "check {}", "doctor --course={}", "fixtures diff {} {}"),
        *(f"grade . {' '.join(NAMED)} --out {{}}", f"grade . {' '.join(NAMED)} --out o --timestamps {{}}"),
    ],
)
def test_path_that_the_system_refuses_is_one_sentence(
    run: Callable[..., Done], unfinished: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(unfinished)
    too_long = "x" * 300  # for a file system; what its user may not look into is refused in the same place
    done = run("--course", KIT, *(word.format(too_long) for word in command.split()))
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"autograder: .*x{300}.* \(File name too long\): check the path.*\.\n", done.err)


# Names


def test_no_name_of_a_student_reaches_the_terminal_raw(
    run: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["\x1b[31mred", "\u202efdp", "[b]x", ":bug:", "two\nlines", "back\\", "\udcff", "Nguyễn Văn An"]
    for name in names:
        put(tmp_path / "class" / name / MODULE)
    monkeypatch.chdir(tmp_path)
    done = run("--course", KIT, "grade", "class", *NAMED, "--out", "[red]:bug:\x1b[2J")
    assert (done.code, done.err) == (0, "")
    assert not has_unseen(done.out)
    for shown in (r"\x1b[31mred", r"\u202efdp", "[b]x ", ":bug:", r"two\nlines", "back\\ ", r"\xff", "Nguyễn"):
        assert re.search(rf"^ *{re.escape(shown)}", done.out, re.MULTILINE), shown
    assert r"  [red]:bug:\x1b[2J/index.html  the class" in done.out.splitlines()


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
    try:
        done = subprocess.run(
            [sys.executable, "-m", "autograder", "items", *NAMED],
            cwd=KIT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert "Traceback" not in done.stderr


def test_handout_names_the_package_that_it_lacks(kit: Path, tmp_path: Path) -> None:
    handout = kit / "handout" / "toy"
    done = toy_kit.autograder(handout, "check", packages=toy_kit.packages_without("numpy", tmp_path))
    sentence = "autograder: the package numpy is missing. Install what requirements.txt asks for.\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", sentence)

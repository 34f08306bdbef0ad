"""Bundles, unpacked and run as each platform does, below a folder of their own."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from formats import validate
from house import engine_imports, imported
from lengths import in_short
from places import GOLDEN, KIT

from autograder.authoring.handout.release import answer_lines, secret_arrays, zip_bytes
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.platforms import bundles
from autograder.platforms.containers import GUARDS
from autograder.sandbox.sandbox import probe
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import read_report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
HIDDEN = f"source/kit/fixtures/{ASSIGNMENT.name}/hidden"
SUBMISSIONS = ASSIGNMENT.folder / "submissions"
MODULE = f"{ASSIGNMENT.module}.py"
GUARDED = all(any(not probe()[layer] for layer in guards) for guards in GUARDS)
in_a_container = pytest.mark.skipif(not GUARDED, reason="no layer of isolation here guards the hidden cases")


Done = subprocess.CompletedProcess[str]


class Container:
    """The platform's one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str) -> Done:
        clean = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": "/"}
        line = ["/bin/bash", "-c", f"exec {self.folder}/{command}"]
        return subprocess.run(line, env=clean, cwd=self.folder, capture_output=True, text=True)

    def results(self, schema: str) -> dict[str, Any]:
        """What it leaves for the platform, which is as that documents it."""
        found: dict[str, Any] = json.loads((self.folder / "results" / "results.json").read_text(encoding="utf-8"))
        validate(found, schema)
        return found


def unpack(files: Mapping[str, bytes], target: Path) -> Path:
    """Unpack as the platforms do, execute bits included."""
    with zipfile.ZipFile(io.BytesIO(zip_bytes(files, ""))) as opened:
        for member in opened.infolist():
            path = Path(opened.extract(member, target))
            path.chmod(member.external_attr >> 16 & 0o777)
    return target


def environment_in(folder: Path) -> None:
    """A virtual environment as `setup.sh` leaves it, borrowed from the one that runs the tests."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    config = Path(sys.prefix) / "pyvenv.cfg"
    if config.is_file():
        shutil.copy(config, folder)
        (folder / "lib").symlink_to(Path(sys.prefix) / "lib")


# Gradescope


@pytest.fixture(scope="module")
def all_bundles() -> dict[str, dict[str, bytes]]:
    return {
        "gradescope": bundles.gradescope_files(ASSIGNMENT),
        "prairielearn": bundles.prairielearn_files(ASSIGNMENT, "course/grader:1"),
        "github": bundles.github_files(ASSIGNMENT),
    }


@pytest.fixture(scope="module")
def built(all_bundles: dict[str, dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/autograder as Gradescope sets it up after building the image."""
    base = tmp_path_factory.mktemp("autograder")
    unpack(all_bundles["gradescope"], base / "source")
    shutil.copy(base / "source" / "run_autograder", base)
    environment_in(base / "venv")
    return base


@pytest.fixture
def autograder(built: Path) -> Container:
    """The same without submission and results, as it is for each student."""
    for name in ("submission", "results"):
        shutil.rmtree(built / name, ignore_errors=True)
    (built / "results").mkdir()
    return Container(built)


@in_a_container
def test_gradescope_gets_golden_grades_and_no_hidden_case(autograder: Container) -> None:
    shutil.copytree(SUBMISSIONS / "emeka", autograder.folder / "submission")
    done = autograder.run("run_autograder")
    assert done.returncode == 0, done
    found = autograder.results("gradescope-results")
    golden = read_report(GOLDEN / "policy_gradient" / "emeka.json")
    assert golden is not None
    assert found["score"] == golden.points
    assert [test["score"] for test in found["tests"]] == [item.points for item in golden.items]
    assert not hidden_things(json.dumps(found) + done.stdout + done.stderr)


def hidden_things(said: str) -> list[str]:
    """Names of hidden cases, and expected numbers of theirs that no chance would write, in what was said."""
    cases = [case for case in read_fixtures(ASSIGNMENT).cases if case.visibility == "hidden"]
    arrays = [expected.array for case in cases for expected in case.expected if expected.array is not None]
    floats = [f"{value:.7g}" for array in arrays if array.dtype.kind == "f" for value in array.ravel()]
    return [thing for thing in (*(case.id for case in cases), *floats) if len(thing) > 6 and thing in said]


SNOOP = """
import glob, os
SEEN = [path for path in glob.glob({base!r} + "/**", recursive=True) if "hidden" in path or "results" in path]
for name in ("manifest.json", "hidden/kl-values.safetensors"):
    try:
        with open({base!r} + "/source/kit/fixtures/policy_gradient/" + name, "rb") as stream:
            SEEN.append(stream.read(9))
    except OSError:
        pass
try:
    with open({base!r} + "/results/results.json", "w") as stream:
        stream.write('{{"score": 100}}')
except OSError:
    pass
if SEEN:
    raise RuntimeError(f"I have read {{SEEN}}")
"""


@pytest.mark.long
@in_a_container
def test_container_code_reads_no_hidden_case_writes_no_result(autograder: Container) -> None:
    shutil.copytree(SUBMISSIONS / "ada", autograder.folder / "submission")
    path = autograder.folder / "submission" / MODULE
    path.write_text(path.read_text(encoding="utf-8") + SNOOP.format(base=str(autograder.folder)), encoding="utf-8")
    done = autograder.run("run_autograder")
    assert done.returncode == 0, done
    found = autograder.results("gradescope-results")
    assert "I have read" not in json.dumps(found)
    assert found["score"] == 100
    stored = autograder.folder / "source" / "kit" / "fixtures"
    assert not [path for path in stored.rglob("*") if path.stat().st_mode & 0o077]  # nor without any isolation


@in_a_container
def test_an_empty_submission_is_a_zero_that_says_why(autograder: Container) -> None:
    (autograder.folder / "submission").mkdir()
    assert autograder.run("run_autograder").returncode == 0
    found = autograder.results("gradescope-results")
    assert found["score"] == 0
    assert f"holds no {MODULE}" in json.dumps(found)


@in_a_container
@pytest.mark.parametrize(
    "broken",
    in_short(["source/kit/autograder/sandbox/worker/worker.py", "submission", f"{HIDDEN}/kl-values.safetensors"]),
)
def test_grader_fault_leaves_no_score_in_gradescope(autograder: Container, broken: str) -> None:
    shutil.copytree(SUBMISSIONS / "ada", autograder.folder / "submission")
    (autograder.folder / "results" / "results.json").write_text('{"score": 0}', encoding="utf-8")
    path = autograder.folder / broken
    whole = path.rename(autograder.folder / "whole")
    if whole.is_file():
        path.write_bytes(b"damaged")
    done = autograder.run("run_autograder")
    path.unlink(missing_ok=True)
    whole.rename(path)
    assert done.returncode == 3, done
    assert done.stderr.startswith("autograder: not graded: ")
    assert not (autograder.folder / "results" / "results.json").exists()


def test_hidden_cases_can_wait_until_grades_are_published(all_bundles: dict[str, dict[str, bytes]]) -> None:
    later = bundles.gradescope_files(ASSIGNMENT, None, "after_published")
    assert [name for name in later if later[name] != all_bundles["gradescope"][name]] == ["run_autograder"]
    assert b"--hidden-cases after_published" in later["run_autograder"]


# What is in a bundle


@pytest.mark.parametrize("platform", ["gradescope", "prairielearn", "github"])
def test_no_bundle_holds_a_line_of_the_solution(all_bundles: dict[str, dict[str, bytes]], platform: str) -> None:
    answers = answer_lines((ASSIGNMENT.solution / MODULE).read_text(encoding="utf-8"))
    assert len(answers) > 20
    for name, data in all_bundles[platform].items():
        lines = {line.strip() for line in data.decode("utf-8", "replace").splitlines()}
        assert not lines & answers, name
        assert not re.search(r"fixtures/.*(oracle|mistakes|cases)(\.py$|/)", name)


@pytest.mark.parametrize(
    ("own", "offered", "taken"),
    [("3.12.3", "", "python3"), ("3.10.12", "python3.11", "python3.11"), ("3.10.12", "", "")],
)
def test_gradescope_setup_takes_a_python_new_enough(
    all_bundles: dict[str, dict[str, bytes]], tmp_path: Path, own: str, offered: str, taken: str
) -> None:
    path = tmp_path / "setup.sh"
    path.write_bytes(all_bundles["gradescope"]["setup.sh"])
    commands = tmp_path / "bin"
    commands.mkdir()
    too_old = int(own.split(".")[1]) < 11
    make_venv = f'echo "$0" > {tmp_path}/taken; mkdir -p "$3/bin"; cp /bin/true "$3/bin/python"'
    fakes = {
        "apt-get": f'case "$*" in *python3.11*) test -n "{offered}";; esac',
        "python3": f'case "$1" in -c) exit {int(too_old)};; --version) echo Python {own};; -m) {make_venv};; esac',
        "python3.11": make_venv,
    }
    for name, body in fakes.items():
        (commands / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (commands / name).chmod(0o755)
    done = subprocess.run(["bash", path], env={"PATH": f"{commands}:/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == (0 if taken else 1), done.stderr
    if taken:
        assert Path((tmp_path / "taken").read_text().strip()).name == taken
    else:
        assert "This image has Python 3.10.12; 3.11 or newer is needed. Choose Ubuntu 24.04" in done.stderr


@pytest.mark.long
def test_a_students_repository_holds_no_hidden_case(all_bundles: dict[str, dict[str, bytes]]) -> None:
    files = all_bundles["github"]
    fixtures = read_fixtures(ASSIGNMENT)
    secret = secret_arrays(fixtures)
    hidden = [case.id.encode() for case in fixtures.cases if case.visibility == "hidden"]
    for name, data in files.items():
        assert "hidden" not in name
        assert not any(array in data for array in secret), name
        assert not any(re.search(rb"(?<![\w-])" + re.escape(case) + rb"(?![\w-])", data) for case in hidden), name
    stored = {name for name in all_bundles["gradescope"] if "/hidden/" in name}
    assert len(stored) == len({case.item for case in fixtures.cases if case.visibility == "hidden"})


def third_party(start: str) -> set[str]:
    """The packages that a module of ours imports anywhere, now or later, and all modules of ours that it leads to."""
    seen: set[str] = set()
    waiting, found = [start], set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting += engine_imports(module) - seen
        found |= {name.partition(".")[0] for name in imported(module)}
    return found - set(sys.stdlib_module_names) - {"autograder"}


def test_container_imports_only_its_requirements() -> None:
    lines = bundles.container_requirements().splitlines()
    wanted = {re.split("[=>]", line)[0] for line in lines}
    assert third_party("platforms.containers") | third_party("sandbox.worker.tensors") <= wanted
    assert wanted == {"torch", "einops", "numpy", "safetensors", "matplotlib", "tqdm"}
    assert next(line for line in lines if line.startswith("torch")).startswith("torch==")


def test_workflow_installs_what_a_repository_imports(repository: Path) -> None:
    install = next(step["run"] for step in steps(repository) if "pip install" in step.get("run", ""))
    listed = (repository / "requirements.txt").read_text(encoding="utf-8").splitlines()
    installed = {re.split("[=>]", line)[0] for line in listed} | set(install.split())
    assert third_party("checking.check") | third_party("sandbox.worker.tensors") <= installed


# PrairieLearn


@pytest.fixture
def question(all_bundles: dict[str, dict[str, bytes]], tmp_path: Path) -> Container:
    """/grade as PrairieLearn fills it: tests/ of the question, what the student uploaded, data.json."""
    base = tmp_path / "grade"
    unpack({name: data for name, data in all_bundles["prairielearn"].items() if name.startswith("tests/")}, base)
    (base / "data").mkdir()
    (base / "data" / "data.json").write_text('{"submitted_answers": {}}', encoding="utf-8")
    return Container(base)


def test_a_question_of_prairielearn_has_what_it_must(all_bundles: dict[str, dict[str, bytes]]) -> None:
    files = all_bundles["prairielearn"]
    assert b"* text=auto eol=lf" in files["tests/.gitattributes"]  # it lies in git, as a student's repository does
    assert b"* text=auto eol=lf" in all_bundles["github"][".gitattributes"]
    info = json.loads(files["info.json"])
    validate(info, "prairielearn-info")
    options = info["externalGradingOptions"]
    assert options["entrypoint"].replace("/grade/", "") in files
    assert options["image"] == "course/grader:1"
    assert not options["enableNetworking"]
    assert f'file-names="{MODULE}"' in files["question.html"].decode()
    assert "<pl-external-grader-results>" in files["question.html"].decode()
    assert {name.partition("/")[0] for name in files} == {"info.json", "question.html", "tests"}


@pytest.mark.long
@in_a_container
def test_prairielearn_gets_the_golden_grades_of_a_submission(question: Container) -> None:
    shutil.copytree(SUBMISSIONS / "farah", question.folder / "student")
    done = question.run("tests/run.sh")
    assert done.returncode == 0, done
    found = question.results("prairielearn-results")
    assert (found["score"], found["gradable"]) == (0.8079, True)


@in_a_container
@pytest.mark.parametrize("fault", in_short(["grader", "submission"]))
def test_fault_costs_no_prairielearn_attempt(question: Container, fault: str) -> None:
    shutil.copytree(SUBMISSIONS / "ada", question.folder / "student")
    if fault == "submission":
        (question.folder / "student" / MODULE).write_bytes(b"\xff\xfe\x00")
    else:
        (question.folder / "tests" / "kit" / "fixtures" / "policy_gradient" / "manifest.json").write_bytes(b"{}")
    assert question.run("tests/run.sh").returncode == (0 if fault == "submission" else 3)
    found = question.results("prairielearn-results")
    assert found["gradable"] is False
    assert ("UTF-16" if fault == "submission" else "no fault of yours") in found["format_errors"][0]
    assert "manifest" not in json.dumps(found)


# GitHub Classroom


def steps(repository: Path) -> list[dict[str, Any]]:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def run_grading(repository: Path, output: Path) -> Done:
    """The step that grades as a runner executes it: bash that stops at the first error, in the repository."""
    [command] = [step["run"] for step in steps(repository) if step.get("id")]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(repository),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(output.with_name("summary")),
    }
    line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
    return subprocess.run(line, cwd=repository, env=environment, capture_output=True, text=True)


@pytest.fixture
def repository(all_bundles: dict[str, dict[str, bytes]], tmp_path: Path) -> Path:
    return unpack(all_bundles["github"], tmp_path / "hw5-ada")


def test_workflow_fails_with_a_public_case_and_asks_no_service(repository: Path) -> None:
    found = steps(repository)
    grading = next(step for step in found if step.get("id"))
    outputs = [f"${{{{steps.{grading['id']}.outputs.{name}}}}}" for name in ("points", "max_points")]
    assert found[-1]["run"] == 'test "{}" = "{}"'.format(*outputs)
    used = {step["uses"].partition("@")[0] for step in found if "uses" in step}
    assert used == {"actions/checkout", "actions/setup-python"}


@pytest.mark.long
def test_a_students_repository_reports_its_public_points(repository: Path, tmp_path: Path) -> None:
    shutil.copy(SUBMISSIONS / "emeka" / MODULE, repository)
    done = run_grading(repository, tmp_path / "output")
    assert done.returncode == 0, done
    lines = (tmp_path / "output").read_text(encoding="utf-8").splitlines()
    outputs = {name: value for name, _, value in (line.partition("=") for line in lines)}
    assert outputs["max_points"] == "100"
    assert 0 < float(outputs["points"]) < 100
    assert "| **public cases** | **" in (tmp_path / "summary").read_text(encoding="utf-8")
    assert f"{outputs['points']} of 100 points" in done.stdout


def test_grader_fault_fails_the_step_without_points(repository: Path, tmp_path: Path) -> None:
    (repository / "fixtures" / "policy_gradient" / "public" / "kl-values.safetensors").write_bytes(b"damaged")
    done = run_grading(repository, tmp_path / "output")
    assert done.returncode == 3
    assert "kl-values.safetensors" in done.stderr
    assert not (tmp_path / "output").exists()


def test_a_bundle_can_be_made_of_another_assignment() -> None:
    bandits = find_assignment(KIT, "bandits")
    hidden = {f"kit/fixtures/bandits/hidden/{path.name}" for path in (bandits.folder / "hidden").glob("*.safetensors")}
    assert hidden
    assert hidden <= bundles.gradescope_files(bandits).keys()
    assert {f"tests/{name}" for name in hidden} <= bundles.prairielearn_files(bandits, "x").keys()
    assert not [name for name in bundles.github_files(bandits) if "hidden" in name]


# Another term, another assignment


def test_bundle_takes_the_given_set_of_fixtures(tmp_path: Path) -> None:
    other = shutil.copytree(ASSIGNMENT.folder, tmp_path / "term", ignore=shutil.ignore_patterns("submissions"))
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")  # the same set under another name
    files = bundles.kit_files(ASSIGNMENT, other)
    assert files["fixtures/policy_gradient/manifest.json"] == (other / "manifest.json").read_bytes()
    (other / "hidden" / "kl-values.safetensors").unlink()
    with pytest.raises(FixtureError, match=r"kl-values\.safetensors"):
        bundles.kit_files(ASSIGNMENT, other)

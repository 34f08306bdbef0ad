"""What isolation costs by itself, and what a whole grading costs over its floor; medians of interleaved runs."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment
from autograder.grading.remarks.details import write_details
from autograder.pages.student_page import feedback_page
from autograder.sandbox.interpreter import environment, packages
from autograder.sandbox.sandbox import Program, Request, Sandbox, layers_for
from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.files import write_atomically
from autograder.vocabulary.report import to_bytes

FLOOR = Path(__file__).resolve().parent / "floor.py"
NOTHING = Program("nothing", "", {}, "")
A_CALL = Request("nothing", "nothing", "nothing", {}, b"", 20.0)  # there is no such function: answered at once


def interleaved(measures: Mapping[str, Callable[[], float]], times: int, *, warm: int = 2) -> dict[str, list[float]]:
    """Each measured so often, in turn: what disturbs the machine for a while disturbs them all."""
    for measure in measures.values():
        for _ in range(warm):
            measure()
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(times):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


# Isolation alone


def isolation_costs(times: int) -> dict[str, Any]:
    """Milliseconds from the wish for a worker to its end: forked alone, with each layer, and with all of `best`.

    A worker is forked, isolates itself, loads an empty module, answers one frame and is ended; what a layer adds over
    the fork alone is the median of the differences within one round.
    """
    layers = layers_for("best")
    kinds = {"fork alone": (), **{f"fork + {layer}": (layer,) for layer in layers}, "fork + all of them": layers}
    with contextlib.ExitStack() as stack:
        measures = {name: _start_and_end(stack.enter_context(_with_layers(kind))) for name, kind in kinds.items()}
        found = interleaved(measures, times)
    alone = found["fork alone"]
    rows = {
        name: {
            "milliseconds": 1000 * statistics.median(seconds),
            "added": 1000 * statistics.median(one - base for one, base in zip(seconds, alone, strict=True)),
        }
        for name, seconds in found.items()
    }
    return {"times": times, "layers": list(layers), "rows": rows}


@contextlib.contextmanager
def _with_layers(layers: Sequence[str]) -> Iterator[Sandbox]:
    with Sandbox(isolation="none") as sandbox:
        sandbox._layers = tuple(layers)  # no user may pick single layers
        yield sandbox


def _start_and_end(sandbox: Sandbox) -> Callable[[], float]:
    def seconds() -> float:
        started = time.perf_counter()
        (outcome,) = sandbox.run(NOTHING, [A_CALL], load_timeout=20.0)
        took = time.perf_counter() - started
        assert outcome.status == "missing", outcome
        return took

    return seconds


# The whole of a submission over its floor


def whole_over_floor(assignment: Assignment, source: str, times: int) -> dict[str, Any]:
    """Seconds of one submission: the floor; graded without layers; graded at `strict`; and the ratios within a round.

    Graded means read, run in a worker of its own, judged, worded, and written as report and page; as in a class,
    nothing waits for the disk.
    """
    grader = Grader.of(assignment, read_fixtures(assignment))
    inside: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = folder / f"{assignment.module}.py"
        path.write_text(source, encoding="utf-8")
        measures = {"floor": _floor(stack.enter_context(_warm_process()), path, inside)}
        for level in ("none", "strict"):
            with contextlib.suppress(SandboxError):  # strict, on a machine that has not got it
                sandbox = stack.enter_context(Sandbox(isolation=level))
                measures[level] = _whole(grader, path, sandbox, folder, inside)
        found = interleaved(measures, times)
    rows = {
        name: {
            "seconds": statistics.median(seconds),
            "over_floor": statistics.median(one / base for one, base in zip(seconds, found["floor"], strict=True)),
            "calls": statistics.median(inside[name][-times:]),
        }
        for name, seconds in found.items()
    }
    return {"times": times, "curves": statistics.median(inside["curves"][-times:]), "rows": rows}


@contextlib.contextmanager
def _warm_process() -> Iterator[subprocess.Popen[str]]:
    settings = {**environment(), "PYTHONPATH": ":".join(packages())}
    command = [sys.executable, str(FLOOR)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)
    with process:
        yield process


def _floor(process: subprocess.Popen[str], path: Path, inside: dict[str, list[float]]) -> Callable[[], float]:
    def seconds() -> float:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 (both are pipes)
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        inside.setdefault("floor", []).append(answer["calls"] - answer["curves"])
        inside.setdefault("curves", []).append(answer["curves"])
        return float(answer["load"] + answer["calls"])

    return seconds


def _whole(
    grader: Grader, path: Path, sandbox: Sandbox, folder: Path, inside: dict[str, list[float]]
) -> Callable[[], float]:
    candidate = Candidate("one", path, path.name)
    level = "strict" if "seccomp" in sandbox.layers else "none"

    def seconds() -> float:
        started = time.perf_counter()
        submission = read(candidate, grader.assignment.module)
        report, details = grader.grade_and_show(submission, sandbox)
        write_details(details, folder / "details.json")
        write_atomically(folder / "one.json", to_bytes(report), lasting=False)
        write_atomically(folder / "one.html", feedback_page(report, submission.notes, details), lasting=False)
        took = time.perf_counter() - started
        assert report.points == report.max_points, "the submission that is timed must be right"
        inside.setdefault(level, []).append(sum(item.seconds for item in report.items))
        return took

    return seconds

"""Measure commands, contenders in turn, the floor of a grading, growing classes, waiting times."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from dask_cluster import Cluster

from autograder.authoring.fixtures.regenerate import import_generator
from autograder.authoring.handout.release import handout_files
from autograder.checking.handout import write_handout
from autograder.course.batch import grade_all
from autograder.grading.details import write_details
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.pages.student_page import feedback_page
from autograder.sandbox.interpreter import environment, packages
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.files import write_atomically
from autograder.vocabulary.report import to_bytes

if TYPE_CHECKING:
    from benchmarks.contenders import Contender, Workshop

INTERVAL = 0.1  # seconds between two looks at the memory of a command
MIB = 2**20
Say = Callable[[str], None]


class CommandFailed(Exception):  # noqa: N818 (what happened to it)
    """A command that is measured must succeed: how fast something fails says nothing."""


# One command


@dataclass(frozen=True)
class Measured:
    """What one command took.

    seconds      wall time, from start to end
    peak_tree    MiB: the greatest sum of resident memory over the command's processes; what they share counts in each
    peak_main    MiB: the greatest resident memory of the command's own process
    output       what it printed
    """

    seconds: float
    peak_tree: float
    peak_main: float
    output: str


def run(command: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end; raises CommandFailed, with the end of what it printed, where it does not succeed."""
    started = time.perf_counter()
    process = psutil.Popen(
        command,
        cwd=folder,
        env=None if settings is None else dict(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    peaks = [0.0, 0.0]
    ended = threading.Event()
    watcher = threading.Thread(target=_watch_memory, args=(process, peaks, ended), daemon=True)
    watcher.start()
    output = process.communicate()[0]
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if process.returncode != 0:
        raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}")
    return Measured(seconds, *peaks, output)


def _watch_memory(process: psutil.Process, peaks: list[float], ended: threading.Event) -> None:
    while not ended.wait(INTERVAL):
        with contextlib.suppress(psutil.Error):
            main = process.memory_info().rss / MIB
            tree = main
            for child in process.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    tree += child.memory_info().rss / MIB
            peaks[:] = max(peaks[0], tree), max(peaks[1], main)


def side_by_side(jobs: Sequence[Callable[[], Measured]], at_a_time: int) -> Measured:
    """Run all of these, so many at a time, as one: wall time of the whole, and peaks that add up."""
    started = time.perf_counter()
    with ThreadPoolExecutor(at_a_time) as pool:
        done = list(pool.map(lambda job: job(), jobs))
    seconds = time.perf_counter() - started
    together = sorted((job.peak_tree for job in done), reverse=True)[:at_a_time]
    return Measured(seconds, sum(together), max(job.peak_main for job in done), "".join(job.output for job in done))


def interleaved(measures: Mapping[str, Callable[[], float]], times: int, *, warm: int = 2) -> dict[str, list[float]]:
    """Measure each so often, in turn: what disturbs the machine for a while disturbs them all."""
    for measure in measures.values():
        for _ in range(warm):
            measure()
    seconds: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(times):
        for name, measure in measures.items():
            seconds[name].append(measure())
    return seconds


# This kit beside others


def compare_all(
    workshop: Workshop, contenders: Sequence[Contender], count: int, rounds: int, at_a_time: Sequence[int], say: Say
) -> list[dict[str, Any]]:
    """A row for each contender and number at a time; what cannot run here has a row that says why.

    whole     seconds of the whole run over its number of submissions, start of the tool included
    further   seconds of each further submission of a long class: the start, timed as a run with one submission at a
              time, left out; where each submission is a command of its own, the same as `whole`
    times_…   the same as multiples of the first contender's
    """
    ready = [contender for contender in contenders if not contender.missing(workshop)]
    for contender in ready:
        say(f"preparing {contender.name}")
        contender.prepare(workshop)
    rows = {
        (contender.name, parallel): {"name": contender.name, "at_a_time": parallel, "missing": "", "runs": []}
        for contender in ready
        for parallel in at_a_time
    }
    for turn in range(rounds):
        for contender in ready:
            for parallel in at_a_time:
                say(f"round {turn + 1} of {rounds}: {contender.name}, {parallel} at a time")
                _time(contender, workshop, count, parallel, rows[contender.name, parallel])
    first = {}
    for (_, parallel), row in rows.items():
        runs = row.pop("runs")
        if row["missing"]:
            continue
        whole, further, peak = zip(*runs, strict=True)
        row |= {"whole": statistics.median(whole), "further": statistics.median(further), "peak_mib": max(peak)}
        base = first.setdefault(parallel, row)
        row |= {f"times_{what}": row[what] / base[what] for what in ("whole", "further")}
    absent = [
        {"name": contender.name, "at_a_time": None, "missing": contender.missing(workshop)}
        for contender in contenders
        if contender not in ready
    ]
    return [*rows.values(), *absent]


def _time(contender: Contender, workshop: Workshop, count: int, parallel: int, row: dict[str, Any]) -> None:
    """Add one run to a row; a tool that fails says so there, and ends nothing but its own row."""
    if row["missing"]:
        return
    try:
        start = 0.0 if contender.fresh_process else contender.grade(workshop, parallel, parallel).seconds
        measured = contender.grade(workshop, count, parallel)
    except CommandFailed as error:
        row["missing"] = f"failed: {error}"
        return
    shared = 0 if contender.fresh_process else parallel
    further = (measured.seconds - start) / (count - shared)
    row["runs"].append((measured.seconds / count, further, measured.peak_tree))


# A submission over its floor


def whole_over_floor(workshop: Workshop, times: int) -> dict[str, Any]:
    """Seconds of one submission: the floor; graded without layers; graded at `strict`; and the ratios within a round.

    Graded means read, run in a worker of its own, judged, worded, and written as report and page; as in a class,
    nothing waits for the disk.
    """
    assignment = workshop.assignment
    grader = Grader.of(assignment, read_fixtures(assignment))
    calls: dict[str, list[float]] = {"floor": [], "none": [], "strict": [], "curves": []}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = folder / workshop.module
        path.write_text(workshop.source, encoding="utf-8")
        process = stack.enter_context(_warm_process())
        measures: dict[str, Callable[[], float]] = {"floor": functools.partial(_floor, process, path, calls)}
        for level in ("none", "strict"):
            with contextlib.suppress(SandboxError):  # strict, on a machine that has not got it
                sandbox = stack.enter_context(Sandbox(isolation=level))
                measures[level] = functools.partial(_whole, grader, path, sandbox, calls[level])
        seconds = interleaved(measures, times)
    rows = {
        name: {
            "seconds": statistics.median(measured),
            "over_floor": statistics.median(b / a for a, b in zip(seconds["floor"], measured, strict=True)),
            "calls": statistics.median(calls[name][-times:]),
        }
        for name, measured in seconds.items()
    }
    return {"times": times, "curves": statistics.median(calls["curves"][-times:]), "rows": rows}


@contextlib.contextmanager
def _warm_process() -> Iterator[subprocess.Popen[str]]:
    settings = {**environment(), "PYTHONPATH": ":".join(packages())}
    command = [sys.executable, str(Path(__file__).with_name("floor.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings) as process:
        yield process


def _floor(process: subprocess.Popen[str], path: Path, calls: dict[str, list[float]]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    calls["floor"].append(answer["calls"] - answer["curves"])
    calls["curves"].append(answer["curves"])
    return float(answer["load"] + answer["calls"])


def _whole(grader: Grader, path: Path, sandbox: Sandbox, calls: list[float]) -> float:
    started = time.perf_counter()
    submission = read(Candidate("one", path, path.name), grader.assignment.module)
    report, details = grader.grade_and_show(submission, sandbox)
    write_details(details, path.with_name("details.json"))
    write_atomically(path.with_name("one.json"), to_bytes(report), lasting=False)
    write_atomically(path.with_name("one.html"), feedback_page(report, submission.notes, details), lasting=False)
    seconds = time.perf_counter() - started
    assert report.points == report.max_points, "the submission that is timed must be right"
    calls.append(sum(item.seconds for item in report.items))
    return seconds


# Classes as they grow

STUB = "def {function}(*arguments, **named):\n    raise NotImplementedError\n"
HANG = "def {function}(*arguments, **named):\n    while True:\n        pass\n"
STRIDE = 37  # from one student's known mistake to the next one's: with no factor of the catalogue's length


def mixed(workshop: Workshop, catalogue: Sequence[str], number: int) -> str:
    """What a student of a mixed class hands in; no two the same bytes.

    Of each hundred 40 are right, 40 hold a known mistake of the catalogue, 10 hold two, 9 leave their last functions
    unfinished, and one hangs, but none after the first thousand: each takes 40 s of a core.
    """
    functions, place = workshop.assignment.functions, number % 10
    if number % 100 == 57 and number < 1000:
        added = [HANG.format(function=functions[-2])]
    elif place < 4:
        added = []
    elif place < 8:
        added = [catalogue[STRIDE * number % len(catalogue)]]
    elif place == 8:
        added = [STUB.format(function=function) for function in functions[-2:]]
    else:
        added = [catalogue[(STRIDE * number + shift) % len(catalogue)] for shift in (0, len(catalogue) // 2)]
    return "\n\n".join([workshop.handed_in(number), *added])


def cost_by_size(workshop: Workshop, sizes: Sequence[int], isolation: str, jobs: int) -> Iterator[dict[str, Any]]:
    """Grade one class after another, by one command each, into an empty folder; a row for each, once it is known.

    each_further   seconds of each submission more than the class before had
    """
    catalogue = [mistake.source for mistake in import_generator(workshop.assignment)["mistakes"].MISTAKES]
    before: dict[str, Any] = {}
    for size in sizes:
        measured = workshop.grade_class([mixed(workshop, catalogue, number) for number in range(size)], isolation, jobs)
        row = {"size": size, "seconds": measured.seconds, "per_submission": measured.seconds / size}
        row |= {"grader_mib": measured.peak_main, "tree_mib": measured.peak_tree}
        if before and size > before["size"]:
            row["each_further"] = (row["seconds"] - before["seconds"]) / (size - before["size"])
        before = row
        yield row


# A cluster

WORKERS = 4
AWAKE, ASLEEP = 0.5, 1.5  # seconds: the slow worker grades a quarter of the time


def on_cluster(workshop: Workshop, size: int) -> dict[str, Any]:
    """Grade a mixed class over Dask with four workers of this machine, of which one is slow and one is killed.

    The killed one loses its process after a quarter of the class, and Dask starts it again. Says how many were graded,
    what each took, and what the grader needed in memory and on disk.
    """
    catalogue = [mistake.source for mistake in import_generator(workshop.assignment)["mistakes"].MISTAKES]
    folder, ended, done = workshop.fresh("cluster"), threading.Event(), [0]
    for number in range(size):
        path = folder / "class" / f"student-{number:05}" / workshop.module
        path.parent.mkdir(parents=True)
        path.write_text(mixed(workshop, catalogue, number), encoding="utf-8")
    candidates = find([folder / "class"], workshop.assignment.module)
    with Cluster(folder) as cluster:
        cluster.add_workers(WORKERS)
        killed, slow, *_ = cluster.workers().values()

        def progress(*_: object) -> None:
            done[0] += 1
            if done[0] == max(1, size // 4):
                os.kill(killed, signal.SIGKILL)

        def slow_down() -> None:
            while not ended.wait(AWAKE):
                os.kill(slow, signal.SIGSTOP)
                ended.wait(ASLEEP)
                os.kill(slow, signal.SIGCONT)

        sleeper = threading.Thread(target=slow_down)
        sleeper.start()
        started = time.perf_counter()
        try:
            grader = Grader.of(workshop.assignment, read_fixtures(workshop.assignment))
            run = grade_all(grader, candidates, folder / "grades", scheduler=cluster.address, progress=progress)
        finally:
            ended.set()
            sleeper.join()
        seconds = time.perf_counter() - started
    stored = sum(path.stat().st_size for path in (folder / "grades").rglob("*") if path.is_file())
    return {
        "size": size,
        "graded": run.figures.graded,
        "seconds": seconds,
        "per_minute": 60 * size / seconds,
        "grader_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stored_mib": stored / MIB,
    }


# What a student waits for

STEP = "import torch; w = torch.nn.Parameter(torch.ones(2)); w.sum().backward(); torch.optim.Adam([w]).step()"
CHECK = [sys.executable, "-m", "autograder", "check"]


def waiting_times(workshop: Workshop, times: int) -> dict[str, Any]:
    """Median seconds of `check` and of what it is held against, in a handout of its own, as a student unpacks it."""
    folder = workshop.fresh("handout") / workshop.assignment.name
    write_handout(handout_files(workshop.assignment), folder)
    module = folder / workshop.module
    module.write_text(workshop.source, encoding="utf-8")
    commands = {
        "python -c 'import torch'": [sys.executable, "-c", "import torch"],
        "the same, and one step of Adam": [sys.executable, "-c", STEP],
        "autograder check, all items": CHECK,
    }
    measures = {name: (lambda command=command: run(command, folder).seconds) for name, command in commands.items()}
    seconds = interleaved(measures, times, warm=0)
    with subprocess.Popen([*CHECK, "--watch"], cwd=folder, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            _await_report(watcher)  # the first, for which torch starts
            seconds["check --watch, after a save"] = [_save(watcher, module) for _ in range(times)]
        finally:
            watcher.send_signal(signal.SIGINT)
    return {"times": times, "rows": {name: statistics.median(measured) for name, measured in seconds.items()}}


# What an author waits for

CHANGES = {  # of policy_gradient: a file of its fixtures, a text in it, what is written in its place for the nth time
    "one mistake changed": ("mistakes/deltas.py", '("1e-5", "1e-4")', lambda n: f'("1e-5", "1.{n}e-4")'),
    "nothing changed": ("mistakes/deltas.py", "", lambda n: ""),
    "one draw changed": ("functions.py", "/ 4 + 0.125, trial", lambda n: f"/ 4 + {0.125 + n / 64}, trial"),
}


def author_times(workshop: Workshop, times: int) -> dict[str, Any]:
    """Median seconds of `regenerate` and `selfcheck` in a copy of the course; what was never run is run once."""
    course, chosen = workshop.fresh("author"), workshop.assignment
    for folder in (chosen.folder, chosen.solution, chosen.handout):
        shutil.copytree(folder, course / folder.parent.name / chosen.name)
    settings = {**os.environ, "XDG_CACHE_HOME": str(course / "cache")}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(*words: str) -> float:
        return run([sys.executable, *words], course, settings).seconds

    kit, last = ("-m", "autograder"), ("--assignment", chosen.name)
    verbs = {"regenerate": (*kit, "fixtures", "regenerate", *last), "selfcheck": (*kit, "selfcheck", *last)}
    rows = {"all of it": {verb: [seconds(*words)] for verb, words in verbs.items()}}
    function = chosen.functions[1]
    rows[f"all of {function}"] = {"selfcheck": [seconds(*verbs["selfcheck"], "--fresh", "--function", function)]}
    rows |= {name: {verb: [] for verb in verbs} for name in CHANGES}
    imports = list[float]()
    for n in range(1, times + 1):
        imports.append(seconds("-c", "import torch"))
        for name, (file, right, wrong) in CHANGES.items():
            text = (chosen.folder / file).read_text(encoding="utf-8")
            if right:
                (course / "fixtures" / chosen.name / file).write_text(text.replace(right, wrong(n)), encoding="utf-8")
            for verb, words in verbs.items():
                rows[name][verb].append(seconds(*words))
    medians = {name: {verb: statistics.median(each) for verb, each in row.items()} for name, row in rows.items()}
    return {"times": times, "torch": statistics.median(imports), "rows": medians}


def _save(watcher: subprocess.Popen[str], module: Path) -> float:
    began = time.perf_counter()
    with module.open("a", encoding="utf-8") as file:
        file.write(f"# saved at {began}\n")
    lines = _await_report(watcher)
    if not any(line.split()[-3:] == ["100", "/", "100"] for line in lines):
        raise CommandFailed("a right submission was not given its points by check --watch")
    return time.perf_counter() - began


def _await_report(watcher: subprocess.Popen[str]) -> list[str]:
    lines: list[str] = []
    assert watcher.stdout is not None
    for line in watcher.stdout:
        lines.append(line)
        if "Checked in" in line:
            return lines
    raise CommandFailed("check --watch ended:\n" + "".join(lines))

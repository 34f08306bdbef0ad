"""This kit beside pytest, nbgrader and Otter; what isolation and a growing class cost; what a student waits for.

    pip install -e '.[test,bench]'
    python tests/benchmarks [--submissions N] [--rounds N] [--sizes 10,100,1000] [--only TABLE,…] [--json FILE]

One run measures all of it on one machine, so that the ratios mean something; they are steadiest where nothing else
runs. Each table, and each row of the sizes, is printed as soon as it is measured. nbgrader and Otter may also live in
an environment of their own: --tools PATH/TO/ITS/python. What is not there has a line that says so. Every contender must
give every submission all of its points, or it has failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

from autograder.grading.assignments import find_assignment  # noqa: E402
from autograder.grading.fixtures import read_fixtures  # noqa: E402
from autograder.grading.items import Assignment  # noqa: E402
from autograder.sandbox.sandbox import layers_for  # noqa: E402
from benchmarks import tables  # noqa: E402
from benchmarks.comparison import compare_all, ratios  # noqa: E402
from benchmarks.contenders import Workshop, contenders  # noqa: E402
from benchmarks.overhead import isolation_costs, whole_over_floor  # noqa: E402
from benchmarks.sizes import cost_by_size  # noqa: E402
from benchmarks.student import waiting_times  # noqa: E402

SAYING = {
    "comparison": "this kit beside others",
    "isolation": "isolation alone",
    "floor": "a submission over its floor",
    "sizes": "classes as they grow",
    "student": "what a student waits for",
}
TABLES = tuple(SAYING)
PACKAGES = ("torch", "numpy", "pytest", "nbgrader", "otter-grader")


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        "python tests/benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=12, help="copies that each contender grades (default 12)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each does so (default 2)")
    parser.add_argument("--jobs", type=_numbers, default=[1, 2], help="how many at a time (default 1,2)")
    parser.add_argument("--times", type=int, default=40, help="repetitions in the table of overheads (default 40)")
    parser.add_argument("--sizes", type=_numbers, default=[10, 100, 1000], help="sizes of class (default 10,100,1000)")
    parser.add_argument("--only", type=_tables, default=list(TABLES), help=f"of {','.join(TABLES)}")
    parser.add_argument("--submission", default="ada", help="whose of the sample class is copied; it must be right")
    parser.add_argument("--against", type=_words, default=["pytest", "nbgrader", "otter"], help="whom to compare with")
    parser.add_argument("--tools", default=sys.executable, help="the Python that has nbgrader and Otter")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    return parser.parse_args()


def main() -> None:
    """Measure, print, write."""
    asked = options()
    assignment = find_assignment(ROOT, "policy_gradient")
    path = assignment.folder / "submissions" / asked.submission / f"{assignment.module}.py"
    source = path.read_text(encoding="utf-8")
    layers = layers_for("best")
    level = "strict" if {"landlock", "seccomp"} <= set(layers) else "best"
    result: dict[str, Any] = {"schema": 1, "machine": machine(asked.tools, layers)}
    show(tables.where(result["machine"]))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        workshop = Workshop(Path(folder), assignment, source, asked.tools)
        for name in (name for name in TABLES if name in asked.only):
            say(SAYING[name])
            result[name] = measured(name, asked, workshop, level)
            if name != "sizes":  # its rows were shown as they came
                show(tables.part(name, result[name]))
            keep(asked.json, result)


def measured(name: str, asked: argparse.Namespace, workshop: Workshop, level: str) -> dict[str, Any]:
    """One table's figures."""
    match name:
        case "comparison":
            return comparison(asked, workshop)
        case "isolation":
            return isolation_costs(asked.times)
        case "floor":
            return whole_over_floor(workshop.assignment, workshop.source, asked.times)
        case "sizes":
            jobs = max(asked.jobs)
            show(tables.sizes_head(level, jobs), end="\n")
            rows = cost_by_size(workshop, asked.sizes, level, jobs, lambda row: show(tables.sizes_row(row), end="\n"))
            show("", end="\n")
            return {"isolation": level, "jobs": jobs, "rows": rows}
    return waiting_times(workshop, max(3, asked.times // 8))


def keep(path: Path | None, result: dict[str, Any]) -> None:
    """Write what is known so far, if a file was asked for: a run that is broken off leaves what it measured."""
    if path is not None:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def show(text: str, end: str = "\n\n") -> None:
    """Print at once: a table, or a row of one, that took minutes."""
    print(text, end=end, flush=True)


def comparison(asked: argparse.Namespace, workshop: Workshop) -> dict[str, Any]:
    """The first table."""
    workshop.write_course()
    chosen = [one for one in contenders() if one.name.startswith(("this kit", *asked.against))]
    rows = compare_all(workshop, chosen, asked.submissions, asked.rounds, asked.jobs, say)
    return {
        "submission": asked.submission,
        "submissions": asked.submissions,
        "rounds": asked.rounds,
        "items": len(workshop.assignment.items),
        "cases": _cases(workshop.assignment),
        "rows": ratios(rows, tables.STRICT),
    }


def _cases(assignment: Assignment) -> int:
    return len(read_fixtures(assignment).cases)


def machine(tools: str, layers: tuple[str, ...]) -> dict[str, Any]:
    """What the figures were measured on."""
    look_up = (
        "import importlib.metadata as m, json, sys\n"
        "version = lambda name: next((one.version for one in m.distributions(name=name)), 'not installed')\n"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    done = subprocess.run([tools, "-c", look_up, *PACKAGES], capture_output=True, text=True, check=True)
    return {
        "started": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "processor": processor(),
        "platform": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load": os.getloadavg()[0],
        "versions": json.loads(done.stdout),
        "layers": list(layers),
    }


def processor() -> str:
    """The name of the processor, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def say(what: str) -> None:
    """Tell on stderr what is under way."""
    print(what, file=sys.stderr, flush=True)


def _numbers(given: str) -> list[int]:
    numbers = [int(number) for number in given.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("numbers of 1 or more, with commas between them")
    return numbers


def _words(given: str) -> list[str]:
    return [word for word in given.split(",") if word]


def _tables(given: str) -> list[str]:
    if unknown := set(given.split(",")) - set(TABLES):
        raise argparse.ArgumentTypeError(f"there is no table {sorted(unknown)[0]!r}: choose among {', '.join(TABLES)}")
    return given.split(",")


if __name__ == "__main__":
    main()

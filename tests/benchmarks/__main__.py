"""This kit beside pytest and nbgrader; a grading over its floor; a growing class; what students and authors wait for.

    pip install -e '.[test,bench]'
    python tests/benchmarks [--submissions N] [--rounds N] [--sizes 10,100,1000] [--only TABLE,…] [--json FILE]

One run measures all of it on one machine, so that the ratios mean something; they are steadiest where nothing else
runs. Each table, and each row of the sizes, is printed as soon as it is measured. nbgrader may also live in an
environment of its own: --tools PATH/TO/ITS/python. What is not there has a line that says so. Every contender must
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

from autograder.grading.assignment import find_assignment  # noqa: E402
from autograder.grading.fixtures import read_fixtures  # noqa: E402
from autograder.sandbox.sandbox import layers_for  # noqa: E402
from benchmarks import measurements  # noqa: E402
from benchmarks.contenders import Workshop, contenders  # noqa: E402

TABLES = {
    "comparison": "this kit beside others",
    "floor": "a submission over its floor",
    "sizes": "classes as they grow",
    "cluster": "a class over Dask",
    "student": "what a student waits for",
    "author": "what an author waits for",
}
PACKAGES = ("torch", "numpy", "pytest", "nbgrader")
VERSIONS = """\
import importlib.metadata as m, json, sys
version = lambda name: next((package.version for package in m.distributions(name=name)), "not installed")
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        "python tests/benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=12, help="copies that each contender grades (default 12)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each does so (default 2)")
    parser.add_argument("--jobs", type=_numbers, default=[1, 2], help="how many at a time (default 1,2)")
    parser.add_argument("--times", type=int, default=40, help="repetitions in the table of overheads (default 40)")
    parser.add_argument("--sizes", type=_numbers, default=[10, 100, 1000], help="sizes of class (default 10,100,1000)")
    parser.add_argument("--on-cluster", type=int, default=20, help="the class over Dask (default 20; aim 10000)")
    parser.add_argument("--only", type=_tables, default=list(TABLES), help=f"of {','.join(TABLES)}")
    parser.add_argument("--assignment", default="policy_gradient", help="what is graded (default policy_gradient)")
    parser.add_argument("--submission", default="ada", help="whose of the sample class is copied; it must be right")
    parser.add_argument("--against", default="pytest,nbgrader", help="whom to compare with")
    parser.add_argument("--tools", default=sys.executable, help="the Python that has nbgrader")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    return parser.parse_args()


def main() -> None:
    """Measure, print, write."""
    asked = options()
    assignment = find_assignment(ROOT, asked.assignment)
    path = assignment.folder / "submissions" / asked.submission / f"{assignment.module}.py"
    layers = layers_for("best")
    result: dict[str, Any] = {"machine": machine(asked.tools, layers)}
    print("\n".join(f"{name}: {value}" for name, value in result["machine"].items()))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        workshop = Workshop(Path(folder), assignment, path.read_text(encoding="utf-8"), asked.tools)
        for table in (table for table in TABLES if table in asked.only):
            say(TABLES[table])
            result[table] = globals()[f"_{table}"](asked, workshop, layers)
            if asked.json:  # after each table: a run that is broken off leaves what it measured
                asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _comparison(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    workshop.write_course()
    chosen = [tool for tool in contenders() if tool.name.startswith(("this kit", *asked.against.split(",")))]
    rows = measurements.compare_all(workshop, chosen, asked.submissions, asked.rounds, asked.jobs, say)
    items, cases = len(workshop.assignment.items), len(read_fixtures(workshop.assignment).cases)
    title = f"{asked.submissions} copies of one right submission ({asked.submission}, {items} items, {cases} cases)"
    show(f"{title}, median of {asked.rounds} rounds")
    print_row("", "at a time", "s each", "ratio", "s further", "ratio", "peak MiB")
    for row in rows:
        if row["missing"]:
            print_row(row["name"], str(row["at_a_time"] or ""), f"  {row['missing'].splitlines()[0]}")
            continue
        ratios = [f"{row[f'times_{what}']:.1f}" for what in ("whole", "further")]
        seconds = [f"{row[what]:.3f}" for what in ("whole", "further")]
        print_row(
            row["name"], row["at_a_time"], seconds[0], ratios[0], seconds[1], ratios[1], f"{row['peak_mib']:,.0f}"
        )
    print(
        "s each: the whole run over its submissions, start included. s further: each further submission of a long\n"
        "class, the start left out. ratio: how many times as long as the first row. Peak memory counts what processes\n"
        "share in each. This kit runs each submission's learning curve as well, which the others do not."
    )
    return {"submissions": asked.submissions, "rounds": asked.rounds, "items": items, "cases": cases, "rows": rows}


def _floor(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    floor = measurements.whole_over_floor(workshop, asked.times)
    names = {"floor": "calls alone, warm process", "none": "graded, process", "strict": "graded, strict"}
    show(f"A right submission over its floor; median of {asked.times}, interleaved")
    print_row("", "s", "in items", "x floor")
    for name, row in floor["rows"].items():
        print_row(names[name], f"{row['seconds']:.3f}", f"{row['calls']:.3f}", f"{row['over_floor']:.2f}")
    print(f"Of the floor, {floor['curves']:.3f} s draw the learning curve, which is not judged.")
    return floor


def _sizes(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    level, jobs = "strict" if {"landlock", "seccomp"} <= set(layers) else "best", max(asked.jobs)
    show(f"A class as it grows, at {level}, {jobs} at a time")
    print(measurements.mixed.__doc__.splitlines()[2].strip())
    print_row("submissions", "seconds", "s each", "s further", "grader MiB", "all MiB")
    rows = []
    for row in measurements.cost_by_size(workshop, asked.sizes, level, jobs):
        further = f"{row['each_further']:.4f}" if "each_further" in row else ""
        memory = [f"{row[name]:,.0f}" for name in ("grader_mib", "tree_mib")]
        print_row(f"{row['size']:,}", f"{row['seconds']:.1f}", f"{row['per_submission']:.4f}", further, *memory)
        rows.append(row)
    return {"isolation": level, "jobs": jobs, "rows": rows}


def _cluster(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    row = measurements.on_cluster(workshop, asked.on_cluster)
    show(f"A mixed class over Dask: {measurements.WORKERS} workers of this machine, one slow, one killed on the way")
    print_row("submissions", "graded", "seconds", "a minute", "grader MiB", "grades MiB")
    cells = (
        f"{row['seconds']:.1f}",
        f"{row['per_minute']:.0f}",
        f"{row['grader_mib']:,.0f}",
        f"{row['stored_mib']:,.1f}",
    )
    print_row(f"{row['size']:,}", f"{row['graded']:,}", *cells)
    return row


def _student(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    waiting = measurements.waiting_times(workshop, max(3, asked.times // 8))
    show(f"What a student waits for; median of {waiting['times']}, interleaved")
    for name, seconds in waiting["rows"].items():
        print_row(name, f"{seconds:.2f}")
    return waiting


def _author(asked: argparse.Namespace, workshop: Workshop, layers: tuple[str, ...]) -> dict[str, Any]:
    waiting = measurements.author_times(workshop, max(3, asked.times // 8))
    torch, verbs = waiting["torch"], ("regenerate", "selfcheck")
    show(f"What an author waits for; median of {waiting['times']}, beside `import torch` with {torch:.2f} s")
    print_row("", "regenerate", "x torch", "selfcheck", "x torch")
    for name, row in waiting["rows"].items():
        cells = [(f"{row[verb]:.2f}", f"{row[verb] / torch:.1f}") if verb in row else ("", "") for verb in verbs]
        print_row(name, *cells[0], *cells[1])
    return waiting


def machine(tools: str, layers: tuple[str, ...]) -> dict[str, Any]:
    """What the figures are measured on."""
    versions = subprocess.run([tools, "-c", VERSIONS, *PACKAGES], capture_output=True, text=True, check=True).stdout
    return {
        "started": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "versions": json.loads(versions),
        "layers": list(layers),
    }


def say(what: str) -> None:
    """Tell on stderr what is under way."""
    print(what, file=sys.stderr, flush=True)


def show(title: str) -> None:
    """Print the title of a table."""
    print(f"\n{title}\n", flush=True)


def print_row(name: str, *cells: object) -> None:
    """Print a row of a table at once: it may have taken minutes."""
    print(f"{name:<32}" + "".join(f"{cell!s:>11}" for cell in cells), flush=True)


def _numbers(given: str) -> list[int]:
    numbers = [int(number) for number in given.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("numbers of 1 or more, with commas between them")
    return numbers


def _tables(given: str) -> list[str]:
    if unknown := set(given.split(",")) - set(TABLES):
        raise argparse.ArgumentTypeError(f"there is no table {sorted(unknown)[0]!r}: choose among {', '.join(TABLES)}")
    return given.split(",")


if __name__ == "__main__":
    main()

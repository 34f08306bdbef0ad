"""How often a wrong function is marked on a line whose change fixes it, in a folder of wrong answers.

    python tests/benchmarks/marks.py FOLDER [--part 0|1]

FOLDER holds `<assignment>/<id>/<file>` and truth.json: a list of {id, assignment, file, function, lines, style, kind}.
"""

import argparse
import collections
import json
import time
from pathlib import Path

from autograder.checking.checker import with_short_timeouts
from autograder.checking.fault_lines import fault_lines
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Print a row for each wrong function, then the shares by assignment and style."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", type=int, help="of two: answers with an even number, or an odd one")
    parser.add_argument("--only", default="", help="how the ids begin")
    options = parser.parse_args()
    truth = json.loads((options.folder / "truth.json").read_text())
    truth = [one for one in truth if one["kind"] == "wrong" and one["id"].startswith(options.only)]
    truth = [one for one in truth if options.part in (None, int(one["id"][-2:]) % 2)]
    shares: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name in dict.fromkeys(one["assignment"] for one in truth):
        chosen = find_assignment(ROOT, name)
        grader = Grader.of(with_short_timeouts(chosen), read_fixtures(chosen, hidden=False))
        with Sandbox(isolation="none") as sandbox:
            for one in (one for one in truth if one["assignment"] == name):
                source = (options.folder / name / one["id"] / one["file"]).read_text()
                submission = Submission(one["id"], one["file"], "", source)
                report = grader.grade(submission, sandbox)
                began = time.perf_counter()
                lines = fault_lines(grader, submission, report.items, sandbox)  # of all: some wait for others' lines
                seconds = time.perf_counter() - began
                for function in one["function"].split(", "):
                    items = [i for i in report.items if i.function == function and i.verdict != "passed"]
                    marks = {item.item: lines[item.item] for item in items if item.item in lines}
                    kinds = [_kind(lines.get(item.item), one["lines"]) for item in items]
                    kind = collections.Counter(kinds).most_common(1)[0][0] if kinds else "unseen"
                    for key in ("all", one["style"], name):
                        shares[key][kind] += 1
                    print(f"{one['id']} {function:28} {kind:10} {marks} {one['lines']} {seconds:.1f} s", flush=True)
    for key, counts in shares.items():
        total = sum(counts.values()) - counts["unseen"]
        parts = (f"{kind} {100 * counts[kind] / max(1, total):.0f} %" for kind in ("right", "wrong", "somewhere"))
        print(f"{key:24}", *parts, f"of {total}; {counts['unseen']} that public cases do not see")


def _kind(line: int | None, truth: list[int]) -> str:
    return "somewhere" if line is None else "right" if line in truth else "wrong"


if __name__ == "__main__":
    main()

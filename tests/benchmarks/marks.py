"""How often a failed item is marked on a line whose change mends the fault.

python tests/benchmarks/marks.py FOLDER [--part 0|1]
"""

import argparse
import collections
import json
import time
from pathlib import Path

from autograder.checking.fault_lines import fault_lines
from autograder.checking.checker import with_short_timeouts
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", type=int, default=None)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    truth = [e for e in json.loads((options.folder / "truth.json").read_text()) if e["kind"] == "wrong"]
    if options.part is not None:
        truth = [e for e in truth if int(e["id"][-2:]) % 2 == options.part]
    truth = [e for e in truth if e["id"].startswith(options.only)]
    shares = collections.defaultdict(collections.Counter)
    for name in dict.fromkeys(e["assignment"] for e in truth):
        chosen = find_assignment(ROOT, name)
        grader = Grader.of(with_short_timeouts(chosen), read_fixtures(chosen, hidden=False))
        with Sandbox(isolation="none") as sandbox:
            for entry in (e for e in truth if e["assignment"] == name):
                source = (options.folder / name / entry["id"] / entry["file"]).read_text()
                submission = Submission(entry["id"], entry["file"], "", source)
                report = grader.grade(submission, sandbox)
                named = entry["function"].split(", ")
                for function in named:
                    began = time.perf_counter()
                    failed = [
                        i for i in report.items if i.function == function and i.verdict not in ("passed", "missing")
                    ]
                    lines = fault_lines(grader, submission, failed, sandbox)
                    seconds = time.perf_counter() - began
                    verdicts = collections.Counter()
                    for item in failed:
                        line = lines.get(item.item)
                        verdicts["right" if line in entry["lines"] else "somewhere" if line is None else "wrong"] += 1
                    kind = "unseen" if not failed else verdicts.most_common(1)[0][0]
                    for key in ("all", entry["style"], name):
                        shares[key][kind] += 1
                    print(
                        f"{entry['id']} {function:28} {kind:10} {dict(lines)} {entry['lines']} {seconds:.1f} s  {entry['fault'][:70]}",
                        flush=True,
                    )
    for key, counts in shares.items():
        total = sum(n for kind, n in counts.items() if kind != "unseen") or 1
        print(
            f"{key:24}",
            *(f"{kind} {100 * counts[kind] / total:.0f} %" for kind in ("right", "wrong", "somewhere")),
            f"of {total}, {counts['unseen']} unseen",
        )


if __name__ == "__main__":
    main()

"""Measure the structure of the kit: its size, its helpers, its start-up, and the path of one submission.

    python tests/support/structure.py

The path is recorded while the engine grades a wrong submission of a sample class, from the folder to the report on the
disk; the pages, which are drawn from the report, come after it. It consists of the functions that are handed the
submission or what becomes of it (CARRIERS), each once, in the order of their first calls:

    stays     runs of functions of one module, read one after another
    rooms     packages of the engine that are entered
    returns   stays in a package that the reader has left before
    frames    functions of the engine above the comparison on the thread that grades
"""

from __future__ import annotations

import ast
import collections
import itertools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

KIT = Path(__file__).resolve().parents[2]
ENGINE = KIT / "autograder"
SAMPLE = "fixtures/policy_gradient/submissions/emeka"
CARRIERS = {"Candidate", "Submission", "Program", "Report"}  # what a submission is while it goes through grading


def python_files(folder: Path) -> list[Path]:
    """All Python files below a folder."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def line_count(paths: list[Path]) -> int:
    """All lines: code, docstrings, comments and empty ones."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def private_functions() -> tuple[int, int]:
    """Private functions and methods of the engine, and how many of them are named once outside their definition."""
    private = 0
    used_once = 0
    for path in python_files(ENGINE):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        uses: collections.Counter[str] = collections.Counter()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.endswith("__"):
                private += 1
                used_once += uses[node.name] == 1
    return private, used_once


def start_up(times: int = 7) -> float:
    """The median seconds that --help takes."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "autograder", "--help"], cwd=KIT, capture_output=True, check=True)
        seconds.append(time.perf_counter() - began)
    return round(statistics.median(seconds), 3)


class Recorder:
    """Note the first call of every function of the engine, in all threads, and the depth of the comparison."""

    def __init__(self) -> None:
        self.first_calls: list[str] = []
        self.seen: set[CodeType] = set()
        self.frames = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take an event of sys.setprofile."""
        code = frame.f_code
        if event != "call" or code in self.seen:
            return
        module = module_of(code)
        if not module or code.co_name.startswith("<"):  # of comprehensions and lambdas the function is what is read
            self.seen.add(code)
            return
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        carries = any(type(value).__name__ in CARRIERS for value in arguments)
        if carries:
            self.seen.add(code)
            self.first_calls.append(module)
        if (module, code.co_name) == ("grading.compare", "compare") and not self.frames:
            depth: FrameType | None = frame.f_back
            while depth is not None:
                self.frames += bool(module_of(depth.f_code)) and not depth.f_code.co_name.startswith("<")
                depth = depth.f_back


def module_of(code: CodeType) -> str:
    """The module of the engine that a function stands in; "" for others and for dataclasses' generated methods."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ENGINE):
        return ""
    return ".".join(path.relative_to(ENGINE).with_suffix("").parts)


def recorded_path() -> dict[str, int]:
    """Grade one submission of the sample class by the command line, and count how a reader would follow it."""
    sys.path.insert(0, str(KIT))
    from autograder.cli.main import main

    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["autograder", "grade", str(KIT / SAMPLE), "--out", folder, "--jobs", "1", "--quiet"]
        threading.setprofile(recorder)
        sys.setprofile(recorder)
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    to_report = itertools.takewhile(lambda module: not module.startswith("pages."), recorder.first_calls)
    stays = [module for module, _ in itertools.groupby(to_report)]
    rooms = [room for room, _ in itertools.groupby(module.partition(".")[0] for module in stays)]
    return {
        "stays": len(stays),
        "rooms": len(set(rooms)),
        "returns": len(rooms) - len(set(rooms)),
        "frames": recorder.frames,
    }


def measure() -> dict[str, Any]:
    """All figures, by what they are of."""
    engine, tests = python_files(ENGINE), python_files(KIT / "tests")
    private, used_once = private_functions()
    return {
        "engine": {"lines": line_count(engine), "modules": len(engine)},
        "packages": {
            folder.name: {"lines": line_count(python_files(folder)), "modules": len(python_files(folder))}
            for folder in sorted(ENGINE.iterdir())
            if (folder / "__init__.py").is_file()
        },
        "tests": {"lines": line_count(tests), "modules": len(tests)},
        "private functions": {"all": private, "used once": used_once, "percent": round(100 * used_once / private)},
        "start-up": {"seconds": start_up()},
        "path of a submission": recorded_path(),
    }


def main() -> None:
    """Print the figures."""
    for name, values in measure().items():
        rows = values.items() if name == "packages" else [(name, values)]
        for label, numbers in rows:
            print(f"{label:<22}", "  ".join(f"{key} {number:,}" for key, number in numbers.items()))


if __name__ == "__main__":
    main()

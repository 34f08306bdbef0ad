"""What a notebook's test cells call: an item's cases, run on the functions of this very kernel.

    from autograder.checking.live import score

    score("policy_gradient", "deltas-centered")

The words are those of `check`. Nothing is isolated here: the kernel is the student's own. Where nbgrader runs the
notebook beside the staff's fixtures, hidden cases count as well.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.grading.assignment import find_assignment, nearest_root
from autograder.grading.counterexamples import with_calls
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Outcome, Program, Request, read_answer
from autograder.sandbox.worker.frames import Frame, encode_header
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import ItemResult
from autograder.vocabulary.report_text import item_lines
from autograder.vocabulary.times import OutOfTimeError, time_limit

if TYPE_CHECKING:
    from autograder.sandbox.worker.worker import Worker

AGAIN = "run this cell"
WIDTH = 82  # nbgrader cuts what it shows of a longer line
NOT_AGAIN = "an earlier case had not finished in time"


def score(assignment: str, item_id: str) -> float | None:
    """Return the points of an item, as the value of a notebook's test cell; write what is wrong to stderr.

    nbgrader looks at a cell's outputs in order: a number is the points, anything on stderr before it is a zero. Its
    Validate button explains a lost point by what is on stderr. So what is short of full marks is displayed here, before
    the explanation, and None is returned, which displays nothing.
    """
    result = result_of(assignment, item_id)
    if result.points is None:
        raise GraderFault(f"This could not be checked, which is no fault of your work. {result.message}")
    text = "\n".join(item_lines(result, again=AGAIN, width=WIDTH)) + "\n"
    if result.verdict == "passed":
        sys.stdout.write(text)  # in one piece: print would send the end of the line by itself
        return result.points
    sys.displayhook(result.points)
    sys.stderr.write(text)
    return None


def result_of(assignment: str, item_id: str) -> ItemResult:
    """Grade one item on the functions that `__main__` holds now.

    Where it is wrong, the function's other items run as well, because its other answers help to name a mistake; and
    where some of its cases count beside right values alone.
    """
    grader = _grader(nearest_root(Path.cwd()), assignment)
    item = grader.assignment.item(item_id)
    others = [other for other in grader.assignment.items if other.function == item.function and other.id != item_id]
    home = _home_of(item.function)
    kernel, submission = Kernel(home), Submission("", "notebook", "", "in the kernel")
    result = grader.grade(submission, kernel, [item]).items[0]
    wrong = result.verdict in ("failed", "raised")
    if wrong or not all(case.judged_numbers for case in grader.fixtures.of_item(item_id)):
        result = grader.grade(submission, kernel, [item, *others]).items[0]
        result = with_calls([result], grader.fixtures.cases, grader.probes)[0]
    message = result.message
    if home is sys.modules["__main__"]:  # else it was imported from a file, and the line is that file's
        message = message.replace(" of your file", " of its cell")
    if result.verdict == "missing" and message.endswith("is not defined."):
        message += " Run its cell first."
    return replace(result, message=message)


@functools.cache
def _grader(root: Path, assignment: str) -> Grader:
    chosen = find_assignment(root, assignment)
    return Grader.of(chosen, read_fixtures(chosen, hidden=(chosen.folder / "hidden").is_dir()), counterexamples=False)


def _home_of(name: str) -> types.ModuleType:
    """Return the module that the function looks its names up in: the notebook, or one that it was imported from."""
    main = sys.modules["__main__"]
    function = getattr(main, name, None)
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    if home is None or getattr(function, "__globals__", None) is not vars(home):
        return main
    return home if getattr(home, name, None) is function else main


class Kernel:
    """Runs cases on a module of this process. It can end what takes too long, and not what ends the process."""

    layers: tuple[str, ...] = ()

    def __init__(self, module: types.ModuleType) -> None:
        """Hold the module whose functions are called."""
        self._module = module

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """Return the outcome of each request, in order; nothing runs after a call that had to be ended."""
        from autograder.sandbox.worker import worker

        if program.torch:
            worker.know_torch()  # as the notebook does already
        outcomes: list[Outcome] = []
        with worker.undisturbed():
            _once(worker.touch)
            for request in requests:
                if any(outcome.status == "timed_out" for outcome in outcomes):
                    outcomes.append(Outcome("not_run", detail=NOT_AGAIN))
                    continue
                file = _file_of(getattr(self._module, request.function, None))
                outcomes.append(_call(worker.Worker.around(self._module, program.probes, file), request))
        return outcomes


@functools.cache
def _once(work: Callable[[], None]) -> None:
    work()


def _file_of(function: object) -> str:
    """Return the file that a function was defined in, which in a notebook is its cell; "" where that is unknown."""
    try:
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    except ValueError:  # a function wrapped in itself
        return ""
    return str(getattr(code, "co_filename", ""))


def _call(worker: Worker, request: Request) -> Outcome:
    header = {"function": request.function, "probe": request.probe, "params": dict(request.params)}
    nowhere = io.StringIO()  # on stderr, what the function prints would be taken for a failure of the cell
    started = time.perf_counter()
    try:
        with (
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            warnings.catch_warnings(),
            time_limit(request.timeout),
        ):
            warnings.simplefilter("ignore")
            answer, tensors = worker.run(header, request.inputs, stopped_by=(OutOfTimeError, KeyboardInterrupt))
    except OutOfTimeError:
        return Outcome("timed_out", detail=f"no answer in {request.timeout:g} s", seconds=request.timeout)
    frame = Frame(encode_header(answer), tensors)
    return read_answer(frame, time.perf_counter() - started, ("observed", "raised", "missing"))

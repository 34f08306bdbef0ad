"""A failed item → the line of the submission to look at: where it raised, or one whose change fixes it.

The function is changed in one small thing at a time (see `repairs`) and called again, in a worker that gets public
cases alone. A change after which the item's public cases pass, and no other case fails that passed, proves its line.
Where staff grade, values of the solution are tried after them (see `values`). Then conditions are turned round, in the
failing cases alone. No changed text is shown to anybody, and nothing but the number of a line comes out. A submission
that forges answers chooses which line of its own is marked.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from autograder.checking.repairs import LIBRARIES, Repair, Text, words_of
from autograder.checking.values import Known, Values, Watching, close, values_in
from autograder.grading.compare import compare
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Array, Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.worker.frames import WATCH
from autograder.sandbox.workers import Worker
from autograder.submissions.submission import BREAK, UNPARSABLE, Submission
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.report import ItemResult

MAX_CHARACTERS = 60_000  # of a submission that is searched
# Changes of one function; of one with many variables, as a training loop; and values. They are counted since a
# mark must not depend on how busy the machine is; the clock is there for who makes the search slow.
MAX_TRIALS, MAX_TRIALS_LONG, MAX_VALUES = 600, 400, 1_500
MAX_LOST = 4  # changes that end the worker, as by a hang
CALL_SECONDS = 1.0
SECONDS, SECONDS_OF_CHECK = 60.0, 5.0  # for all functions of a submission: an honest one needs about one
MOST_SECONDS = 60.0  # of processor time, of one worker
MAX_LINES = 3  # that an unknown value comes from: the last is marked, which is right three times of four
MAX_TIMES = 64  # that a condition is computed, each of which is turned round
BATCH = 12  # changes that are sent together
AROUND, MAX_WIDTH = 2, 120  # lines that are shown on each side, and characters of each
LATER = ("graph", "gradient", "purity")  # how a case may fail still, which failed before these were looked at
# The solution, fixtures, function → by case what the solution's expressions come to
RIGHT_VALUES: dict[tuple[str, str, str], dict[str, Values]] = {}
# As `Submission.place` words it.
TOLD = re.compile(r"^(Line (\d{1,9}) of (?:your file|cell (\d{1,9}) \(text cells count\)))[.:]$", re.MULTILINE)
NUMBER = re.compile(r"\d+")


def fault_lines(
    grader: Grader,
    submission: Submission,
    items: Sequence[ItemResult],
    sandbox: Sandbox,
    seconds: float = SECONDS,
) -> dict[str, int]:
    """Return item → the line of the source that it is about; without those items of which that is not certain."""
    lines: dict[str, int] = {}
    refusing = _conditions_of_refusals(submission.source)
    searched: dict[str, dict[str, Set[str]]] = {}
    for item in items:
        if item.verdict in ("passed", "missing", "not_graded") or item.is_unreached:
            continue
        line = line_in_message(item.message, submission)
        if line is not None:
            lines[item.item] = refusing.get(line, line)
        elif item.verdict == "failed" and not item.waits_for:
            words = words_of(f"{item.title} {item.message} {item.hint}")
            searched.setdefault(item.function, {})[item.item] = words
    right = {item.function for item in items}.difference(item.function for item in items if item.verdict != "passed")
    until = time.perf_counter() + seconds
    for function, failed in searched.items():
        try:
            lines |= Search(grader, submission, function, sandbox, until).lines(failed, right)
        except Exception:  # whatever was handed in: a page without a mark is a page
            continue
    return {item.item: lines[item.waits_for] for item in items if item.waits_for in lines} | lines


def line_in_message(message: str, submission: Submission) -> int | None:
    """Return the line of the source that a message tells in the words of `Submission.place`."""
    for told in TOLD.finditer(message):
        number = int(told[2])
        cells = [begin + number - 1 for begin, cell in submission.cells if told[3] and cell == int(told[3])]
        saved = [begin + number - submission.lines[cell - 1] for begin, cell in submission.cells if submission.lines]
        for line in (*cells, *saved, *([] if submission.cells else [number])):
            if line >= 1 and submission.place(line) == told[1]:
                return line
    return None


def _conditions_of_refusals(source: str) -> dict[int, int]:
    """Return for each line that raises under an `if` the line of this condition."""
    try:
        conditions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If)]
    except UNPARSABLE:
        return {}
    return {
        at.lineno: node.lineno
        for node in conditions
        for at in node.body
        if isinstance(at, ast.Raise) and "NotImplementedError" not in ast.dump(at)
    }


def excerpt(item: ItemResult, submission: Submission, line: int | None) -> list[str]:
    """Show a failed item's line and two lines around it, or say which function it is in."""
    function = submission.functions.get(item.function)
    if item.verdict in ("passed", "missing", "not_graded") or function is None or item.is_withheld:
        return []
    if line is None:
        place = submission.place(function.last)
        begins, ends = (NUMBER.findall(submission.place(at))[0] for at in (function.head, function.last))
        helped = ", or in what it calls" * submission.has_helpers(item.function)
        return [f"Somewhere in {item.function}, lines {begins} to {ends} of {place.partition(' of ')[2]}{helped}."]
    first, last = 1, len(source := BREAK.split(submission.source))
    for begin, _ in submission.cells:  # a line before each names the cell
        first, last = (begin, last) if begin <= line else (first, min(last, begin - 2))
    shift = int(NUMBER.findall(submission.place(line))[0]) - line
    numbers = range(max(first, line - AROUND), min(last, line + AROUND) + 1)
    rows = [f"{'>' if at == line else ' '} {at + shift:>4}   {source[at - 1].expandtabs(4)}" for at in numbers]
    return [f"{submission.place(line)}:", *(row.rstrip()[:MAX_WIDTH] for row in rows)]


class Search:
    """Looks for the lines of one function's failed items, in a worker that it closes."""

    def __init__(self, grader: Grader, submission: Submission, function: str, sandbox: Sandbox, until: float) -> None:
        """Collect the public cases of the function, which are tried until this moment."""
        chosen = grader.assignment
        self._grader, self._until = grader, until
        self._sandbox, self._source, self._function = sandbox, submission.source, function
        text, allowed = (submission.source, grader.given, grader.probes), chosen.only_packages
        self._program = Program(chosen.module, *text, chosen.needs_torch, allowed, until=until)
        self._loading = Request("", "", "", {}, b"", chosen.load_timeout)
        self._cases: dict[str, Case] = {}
        self._requests: dict[str, Request] = {}
        for item in chosen.items:
            for case in grader.fixtures.of_item(item.id):
                if case.function == function and case.visibility == "public":
                    self._cases[case.id] = case
                    self._requests[case.id] = replace(case.request(item), timeout=min(CALL_SECONDS, item.timeout))
        self._worker: Worker | None = None
        self._closing = contextlib.ExitStack()

    def lines(self, failed: Mapping[str, Set[str]], right: Set[str]) -> dict[str, int]:
        """Return item → line, of those failed items of which a line is found.

        failed   items with the words that a student reads of each
        right    functions that need no change
        """
        if len(self._source) > MAX_CHARACTERS:
            return {}
        try:
            text = Text(self._source, self._function, right, self._grader.assignment.untouched_source())
        except UNPARSABLE:
            return {}
        with self._closing:
            watching = self._watch(text)
            return self._lines(text, failed, watching) if len(self._before) == len(self._requests) else {}

    def _watch(self, text: Text) -> Watching:
        """Call the function in each case, and keep what its expressions come to."""
        watching = Watching(text.data.decode(), {unit.lineno for unit in text.units}, LIBRARIES)
        asked = [replace(request, source=watching.text, watched=True) for request in self._requests.values()]
        self._before = dict(zip(self._requests, self._calls(asked), strict=False))
        self._failures = {key: self._failure(key, outcome) for key, outcome in self._before.items()}
        self._values = {key: values_in(outcome) for key, outcome in self._before.items()}
        return watching

    def _lines(self, text: Text, failed: Mapping[str, Set[str]], watching: Watching) -> dict[str, int]:
        ran = {key: frozenset(watching.lines[at] for at in outcome.watched) for key, outcome in self._before.items()}
        right = {key for key, failure in self._failures.items() if not failure}
        left: dict[str, list[str]] = {}
        for key, case in self._cases.items():
            if case.item in failed and key not in right:
                left.setdefault(case.item, []).append(key)
        passing = frozenset[int]().union(*(ran[key] for key in right))
        found: dict[str, int] = {}
        likely: dict[str, int] = {}  # where other items' lines say nothing
        sought: dict[str, frozenset[int]] = {}  # item → lines that run in each of its failing cases
        while left:
            item = min(left, key=lambda item: len(ran[left[item][0]]))  # the one that runs least of the text
            first = min(left[item], key=lambda key: len(ran[key]))
            executed = sought[item] = frozenset.intersection(*(ran[key] for key in left[item]))
            if self._failures[first] == "error" and (line := self._line_by_truths(watching, left[item])) is not None:
                found[item] = line
                del left[item]
                continue
            repairs = text.repairs(executed, executed - passing, self._failures[first], failed[item], {*found.values()})
            trials = (MAX_TRIALS_LONG if text.is_long else MAX_TRIALS) // len(sought)
            pairs = itertools.islice(
                text.pairs(sorted(repairs, key=lambda repair: repair.line in passing)), trials // 2
            )
            for repair, source in self._mending(itertools.chain(repairs[:trials], pairs), first):
                asked = [replace(request, source=source) for request in self._requests.values()]
                passed = {
                    key
                    for key, seen in zip(self._cases, self._calls(asked), strict=False)
                    if not self._failure(key, seen)
                }
                fixed = [name for name, keys in left.items() if passed >= right | {*keys}]
                found |= dict.fromkeys(fixed, repair.line)
                left = {name: keys for name, keys in left.items() if name not in fixed}
                if item in fixed:
                    break
            if item in left:
                failing = sorted(left[item], key=lambda key: len(ran[key]))
                lines = self._lines_by_values(watching, failing, MAX_VALUES // len(sought))
                line = min(lines) if len(lines) == 1 else self._line_by_truths(watching, failing)
                found |= {} if line is None else {item: line}
                if 1 < len(lines) <= MAX_LINES and self._failures[failing[0]] != "fact":  # as of texts
                    likely[item] = max(lines)
            left.pop(item, None)
        # One fault, most often
        again = {item: executed.intersection(found.values()) for item, executed in sought.items()}
        return likely | {item: min(lines) for item, lines in again.items() if lines} | found

    def _lines_by_values(self, watching: Watching, failing: Sequence[str], trials: int) -> set[int]:
        """Return the lines of the first unknown expression that values of the solution mend, or of the only known."""
        right, first = self._right_values(), failing[0]
        if self._failures[first] == "error" or first not in right:
            return set()
        values, keys = self._values, [*failing, *(key for key, failure in self._failures.items() if not failure)]
        known = Known([*self._cases[first].inputs.values(), *(array for at, array in right[first].items() if at >= 0)])
        ran = self._before[first].watched
        unknown = {  # what a module computes as it is loaded has no values
            at
            for at in {*watching.outside, *ran} & watching.parts.keys()
            if at not in values[first] or not known.holds(values[first][at])
        }
        lines, tried = set[int](), 0

        answers = [wanted.array.reshape(-1) for wanted in self._cases[first].expected if wanted.array is not None]
        valued = (at for at in values[first] if at in watching.parts)
        for expression in sorted(valued, key=lambda at: at not in unknown):  # those first that were first
            if len(lines) > 1:
                break
            seen = values[first][expression].reshape(-1)
            is_condition = np.isin(seen, (0, 1)).all()
            instead = {
                number: array.reshape(-1)
                for number, array in right[first].items()
                if array.size == seen.size and (is_condition or (number >= 0 and not np.isin(array, (0, 1)).all()))
            }
            alike: dict[bytes, list[dict[str, Array]]] = {}
            for number, array in instead.items():
                is_answer = any(answer.size == array.size and close(array, answer) for answer in answers)
                if not close(array, seen) and (expression in unknown or not is_answer):
                    by_case = {
                        key: right[key][number].reshape(values[key][expression].shape)
                        for key in keys
                        if number in right.get(key, ()) and expression in values[key]
                        if right[key][number].size == values[key][expression].size
                    }
                    if by_case.keys() >= {*failing}:
                        alike.setdefault(array.tobytes(), []).append(by_case)
            mended = self._mends(watching, first, expression, [by_case[first] for by_case, *_ in alike.values()])
            tried += len(mended)
            if self._worker is None or tried > trials or time.perf_counter() > self._until:
                break
            if any(
                all(self._mends(watching, key, expression, [by_case[key]]) == [True] for key in by_case if key != first)
                for by_case in itertools.chain(*itertools.compress(alike.values(), mended))
            ):
                if expression in unknown:
                    return watching.lines_of(expression, unknown, {watching.lines[at] for at in ran})
                lines.add(watching.lines[expression])
        return lines if len(lines) == 1 else set()

    def _mends(self, watching: Watching, key: str, expression: int, instead: Iterable[Array]) -> list[bool]:
        """Tell of each value whether the case passes, or gets to a later rung, with it in place of the expression."""
        before = self._failures[key]
        after = [self._failure(key, outcome) for outcome in self._calls_with(watching, key, expression, instead)]
        return [not failure or (failure in LATER and before not in LATER) for failure in after]

    def _calls_with(self, watching: Watching, key: str, expression: int, instead: Iterable[Array]) -> list[Outcome]:
        """Call the function in this case with each of these values in place of the expression."""
        inputs = [{**self._cases[key].inputs, f"{WATCH}{expression}": array} for array in instead]
        cases = [replace(self._cases[key], inputs=each) for each in inputs]
        return self._calls(
            [replace(self._requests[key], source=watching.text, inputs=case.encoded_inputs) for case in cases]
        )

    def _line_by_truths(self, watching: Watching, failing: Sequence[str]) -> int | None:
        """Return the line of the first condition by whose other outcome all these cases pass, and that is unknown."""
        values, right = self._values, self._right_values()

        def is_known(number: int) -> bool:
            seen = {key: values[key][number].reshape(-1) for key in values if number in values[key]}
            for other in {other for key in seen for other in right.get(key, ())}:
                shared = [key for key in seen if other in right.get(key, ())]
                if shared and all(np.array_equal(seen[key], right[key][other].reshape(-1)) for key in shared):
                    numbers = np.concatenate([seen[key] for key in shared])
                    if {*failing} <= {*shared} and numbers.min() < numbers.max():
                        return True
            return False

        def is_decided_by(number: int, key: str) -> bool:
            seen, left = values[key].get(number, np.zeros(0)), self._distance(key, self._before[key])
            for at in range(seen.size if seen.size <= MAX_TIMES else 0):
                turned = np.where(np.arange(seen.size).reshape(seen.shape) == at, 1 - seen, seen)
                distances = [self._distance(key, each) for each in self._calls_with(watching, key, number, [turned])]
                if distances and distances[0] < left:
                    seen, left = turned, distances[0]
                if left == 0:
                    return True
            return False

        lines = {
            watching.lines[number]: None
            for number in watching.truths
            if all(is_decided_by(number, key) for key in failing) and not is_known(number)
        }
        return next(iter(lines), None) if right or len(lines) == 1 else None

    def _right_values(self) -> dict[str, Values]:
        """Return what the solution's expressions come to in each case; nothing where there is no solution."""
        key = self._grader.solution, self._grader.fixtures.sha256, self._function
        if key not in RIGHT_VALUES and self._grader.solution:
            self._close()  # a server has one worker at a time
            right = Submission("", "", "", self._grader.solution)
            search = Search(self._grader, right, self._function, self._sandbox, math.inf)
            with search._closing:
                search._watch(Text(right.source, self._function))
            if len(search._values) < len(self._requests):  # it may be quicker next time
                return {}
            RIGHT_VALUES[key] = {  # a condition may be stated the other way round
                case: values | {~at: 1 - array for at, array in values.items() if np.isin(array, (0, 1)).all()}
                for case, values in search._values.items()
            }
        return RIGHT_VALUES.get(key, {})

    def _mending(self, repairs: Iterable[Repair], case: str) -> Iterator[tuple[Repair, str]]:
        """Yield each repair after which this case passes, with the repaired text."""
        tried: set[str] = set()
        lost = 0
        for batch in iter(lambda: list(itertools.islice(repairs, BATCH)), []):
            sources = {repair.source(): repair for repair in reversed(batch)}
            waiting = [source for source in reversed(sources) if source not in tried]
            tried.update(sources)
            while waiting:
                if time.perf_counter() > self._until or lost > MAX_LOST:
                    return
                seen = self._calls([replace(self._requests[case], source=source) for source in waiting])
                for source, outcome in zip(waiting, seen, strict=False):
                    if not self._failure(case, outcome):
                        yield sources[source], source
                lost += len(seen) < len(waiting)
                waiting = waiting[len(seen) :]

    def _failure(self, key: str, outcome: Outcome) -> str:
        """Return on which rung a case fails, or how its call ended; "" where it passes."""
        if outcome.observation is None:
            return outcome.status
        mismatch = compare(self._cases[key].expected, outcome.observation)
        return "" if mismatch is None else mismatch.rung

    def _distance(self, key: str, outcome: Outcome) -> float:
        """Return by how much a case fails: how far its numbers are off, or how many parts of a fact are others."""
        if outcome.observation is None:
            return math.inf
        if (mismatch := compare(self._cases[key].expected, outcome.observation)) is None:
            return 0
        seen, wanted = mismatch.observed, mismatch.expectation.value
        if isinstance(seen, list) and isinstance(wanted, list) and len(seen) == len(wanted):
            return 1.0 + sum(bool(one != other) for one, other in zip(seen, wanted, strict=True))
        array, right = mismatch.returned.array, mismatch.expectation.array
        if mismatch.rung != "values" or array is None or right is None or array.shape != right.shape:
            return math.inf
        return 1 + float(np.abs(array - right, dtype=float).sum())

    def _calls(self, requests: Sequence[Request]) -> list[Outcome]:
        """Return the outcomes of these calls up to one that loses the worker; the next calls get another."""
        if self._worker is None:
            self._worker = self._closing.enter_context(self._sandbox.worker(self._program, MOST_SECONDS))
            if self._worker.load(self._program, self._loading) is not None:
                raise SandboxError("The submission could not be loaded again.")
        outcomes = []
        for outcome in self._worker.calls(requests):
            outcomes.append(outcome)
            if outcome.raised is None and outcome.status not in ("observed", "missing"):
                self._close()
                break
        return outcomes

    def _close(self) -> None:
        self._closing.close()
        self._worker = None

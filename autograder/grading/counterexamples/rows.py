"""Counterexamples without an oracle: a public case that fails, cut to one of its rows.

`rows.toml` beside the stored cases says of which probes, or of which functions that the engine's own probe calls, a row
of the answer depends on that row of the inputs alone:

    [compute_deltas]
    inputs = ["rewards"]                            # whose first axis is the rows'
    call = 'compute_deltas({rewards}, "{mode}")'    # what to paste: inputs as tensors, parameters as they are

So what is stored of a row decides a call with that row and no other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import Mismatch
from autograder.grading.counterexamples.search import Runner, is_lost, wrong
from autograder.grading.counterexamples.telling import told
from autograder.grading.counterexamples.trials import Trial
from autograder.grading.items import Assignment, Item
from autograder.grading.remarks.wording import Place, in_file
from autograder.sandbox.calls import Outcome, Program, Raised
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import ItemResult

FILE = "rows.toml"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
RETURNS = "returns"  # a parameter of all calls that the engine's own probe makes
KIND = ("fact", "kind")  # of what came back: no matter of rows
MOST_ROWS = 12  # of a case; one call each


@dataclass(frozen=True)
class RowSearch:
    """One submission's search among the rows of public cases.

    raised   the ids of cases in which it raised an exception: a row in which another thing goes wrong is not shown,
             for it would explain nothing of what the message says
    """

    declared: Mapping[str, Mapping[str, Any]]
    cases: Sequence[Case]
    program: Program
    runner: Runner
    load_timeout: float
    place: Place = in_file
    raised: Collection[str] = ()

    def after(self, results: Iterable[ItemResult]) -> Self:
        """The same search, which knows in which cases of these results it raised."""
        raised = {case.case for result in results for case in result.cases if case.verdict == "raised"}
        return replace(self, raised=raised)

    def counterexamples(self, items: Sequence[Item]) -> dict[str, str]:
        """Item → the text of its counterexample: of the first case with a row that is wrong by itself, and likewise."""
        trials = [(item, whole, trial) for item in items for whole, trial in self._trials(item)]
        ready = [(whole, (item, trial, case)) for item, whole, trial in trials if (case := trial.as_case(item))]
        first: dict[str, tuple[Item, Trial, Case]] = {}
        for (whole, asked), outcome in zip(ready, self._run([asked for _, asked in ready]), strict=True):
            item, _, case = asked
            if item.id not in first and not is_lost(outcome) and self._is_alike(whole, wrong(case, outcome)):
                first[item.id] = asked
        return {item: text for item, found in first.items() if (text := self._confirmed(*found))}

    def _is_alike(self, whole: str, fault: Mismatch | Raised | None) -> bool:
        """Whether a row goes wrong as its whole case does: by an exception, or by an answer."""
        return fault is not None and isinstance(fault, Raised) == (whole in self.raised)

    def _trials(self, item: Item) -> Iterator[tuple[str, Trial]]:
        """Each row of the item's public cases that has others beside it, in order, with the case's id."""
        for case in self.cases:
            if case.item == item.id and case.visibility == "public":
                yield from ((case.id, trial) for trial in rows_of(case, self.declared))

    def _run(self, asked: Sequence[tuple[Item, Trial, Case]]) -> list[Outcome]:
        requests = [case.request(item) for item, _, case in asked]
        return self.runner.run(self.program, requests, load_timeout=self.load_timeout) if requests else []

    def _confirmed(self, item: Item, trial: Trial, case: Case) -> str:
        outcome = self._run([(item, trial, case)])[0]
        found = None if is_lost(outcome) else wrong(case, outcome)
        return "" if found is None else told(trial, case, found, self.place)


def read_rows(assignment: Assignment) -> dict[str, Any]:
    """What rows.toml declares, by probe; nothing where there is no such file. Raises FixtureError on anything else."""
    path = assignment.folder / FILE
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise FixtureError(f"{path} cannot be used: {error}.") from error
    for probe, entry in declared.items():
        if not isinstance(entry, dict) or entry.keys() != {"inputs", "call"}:
            raise FixtureError(f"{path} should say `inputs` and `call` of {probe}, and nothing else.")
    return declared


def rows_of(case: Case, declared: Mapping[str, Mapping[str, Any]]) -> list[Trial]:
    """The case cut to each of its rows; none where it has only one, or anything in it is not by rows."""
    entry = declared.get(case.probe) or (declared.get(case.function) if RETURNS in case.params else None)
    count = {len(array) if array.ndim else 0 for array in case.inputs.values()}
    if entry is None or set(case.inputs) != set(entry["inputs"]):
        return []
    if len(count) != 1 or not 1 < (rows := count.pop()) <= MOST_ROWS:
        return []
    if set(PLACEHOLDER.findall(entry["call"])) - set(case.inputs) - _settings(case).keys():
        return []
    told = [one for one in case.expected if (one.kind, one.name) != KIND]
    if any(one.kind not in ("value", "unchanged") or not _has_rows(one, rows) for one in told):
        return []
    return [_row(case, entry, row) for row in range(rows)]


def _settings(case: Case) -> dict[str, Any]:
    """The parameters of a case, and what the engine's own probe is given beside arrays."""
    return {**case.params.get("given", {}), **case.params}


def _has_rows(expectation: Expectation, rows: int) -> bool:
    array = expectation.array
    return array is not None and array.ndim > 0 and len(array) == rows


def _row(case: Case, declared: Mapping[str, Any], row: int) -> Trial:
    def cut(expectation: Expectation) -> Expectation:
        array = expectation.array
        return replace(expectation, array=None if array is None else array[row : row + 1])

    expected = [cut(one) for one in case.expected if one.kind == "value"]
    inputs = {name: array[row : row + 1] for name, array in case.inputs.items()}
    text = str(declared["call"])
    for name, setting in _settings(case).items():
        text = text.replace(f"{{{name}}}", str(setting))
    return Trial(case.probe, inputs, case.params, lambda inputs, params: expected, {"": text})

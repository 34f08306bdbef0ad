"""The floor: the calls that grading a submission makes, in one warm process, with no isolation and no comparison.

Nothing is copied, described, sent or judged, and no state is put back between calls: no grader could do the same calls
in less. As a program it answers each line of stdin, a submission's path, with the seconds that it took.
"""

from __future__ import annotations

import json
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from autograder.grading.assignment import Assignment, find_assignment  # noqa: E402
from autograder.grading.fixtures import Case, read_fixtures  # noqa: E402
from autograder.sandbox.worker import worker  # noqa: E402


class Floor:
    """The given modules and probes of an assignment, loaded once, and the inputs of its cases as tensors."""

    def __init__(self, assignment: Assignment, cases: Sequence[Case], curves: Sequence[Case] = ()) -> None:
        """Load what does not change from one submission to the next."""
        for name, source in assignment.given_sources().items():
            _module(name, source, listed=True)
        self._probes = _module("probes", assignment.probes_source())
        self._name = assignment.module
        self._cases = [(case, _tensors(case)) for case in (*cases, *curves)]
        self._judged = len(cases)

    def load(self, source: str) -> types.ModuleType:
        """The submission as a module."""
        return _module(self._name, source, listed=True)

    def calls(self, student: types.ModuleType) -> list[Callable[[], tuple[dict[str, Any], dict[str, Any]]]]:
        """Each case's call, ready to be made once: it has inputs of its own."""
        return [self._call(case, inputs, student) for case, inputs in self._cases]

    def seconds(self, source: str) -> dict[str, float]:
        """What loading took, what all calls took, and what of that went into curves, which are drawn and not judged."""
        started = time.perf_counter()
        student = self.load(source)
        loaded = time.perf_counter()
        calls = self.calls(student)
        ready = time.perf_counter()
        for call in calls[: self._judged]:
            call()
        judged = time.perf_counter()
        for call in calls[self._judged :]:
            call()
        over = time.perf_counter()
        return {"load": loaded - started, "calls": over - ready, "curves": over - judged}

    def _call(
        self, case: Case, inputs: dict[str, torch.Tensor], student: types.ModuleType
    ) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
        probe, own = getattr(self._probes, case.probe), {name: tensor.clone() for name, tensor in inputs.items()}
        return lambda: probe(student, own, case.params)


def _tensors(case: Case) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in case.inputs.items()}


def _module(name: str, source: str, *, listed: bool = False) -> types.ModuleType:
    module = types.ModuleType(name)
    if listed:
        sys.modules[name] = module
    exec(compile(source, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return module


def main() -> None:
    """Answer until stdin ends."""
    worker.know_torch()
    worker.warm()
    assignment = find_assignment(ROOT, "policy_gradient")
    fixtures = read_fixtures(assignment)
    floor = Floor(assignment, fixtures.cases, fixtures.curves)
    for line in sys.stdin:
        answer = floor.seconds(Path(line.strip()).read_text(encoding="utf-8"))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

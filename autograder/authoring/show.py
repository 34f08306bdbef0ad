"""A stored case as a person would want to read it: the call, its inputs, what is expected, which mistakes fail it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.feedback.wording import named_shape
from autograder.grading.fixtures import Fixtures
from autograder.grading.items import Item
from autograder.sandbox.observation import Array
from autograder.vocabulary.text import number

WIDTH = 100
MARGIN = " " * 12
MAX_VALUES = 60  # of one array; longer ones are shown by their corners


def item_text(item: Item, fixtures: Fixtures) -> str:
    """All stored cases of one item, for staff: hidden ones are shown whole."""
    cases = fixtures.of_item(item.id)
    count = f"{len(cases)} case{'s' * (len(cases) != 1)}"
    head = f"{item.id}  {item.title}\n{item.function}, {number(item.points)} points, {count}"
    return "\n\n".join([head, *("\n".join(case_lines(case)) for case in cases)]) + "\n"


def case_lines(case: Case) -> Iterator[str]:
    """One case, line by line."""
    yield f"{case.id}  ({case.visibility})  {case.title}"
    parameters = f"({json.dumps(dict(case.params))})" if case.params else ""
    yield from _wrapped(f"  probe     {case.probe}{parameters}")
    for name, array in case.inputs.items():
        yield f"  given     {name}   {array.dtype}{list(array.shape)}"
        yield from _values(array)
    for expectation in case.expected:
        if expectation.kind != "unchanged" and not expectation.diagnosis:
            yield from _expected(expectation)
    kept = [expectation.name for expectation in case.expected if expectation.kind == "unchanged"]
    if kept:
        yield f"  unchanged {', '.join(kept)}"
    slugs = f": {', '.join(sorted(case.mistakes))}" if case.mistakes else ""
    yield from _wrapped(f"  separates {len(case.mistakes)} mistakes{slugs}")


def _expected(expectation: Expectation) -> Iterator[str]:
    if expectation.array is None:
        yield from _wrapped(f"  expected  {expectation.what}: {json.dumps(expectation.value)}")
        return
    yield f"  expected  {expectation.what}   {expectation.dtype}{named_shape(expectation)}"
    yield f"{MARGIN}allowed: {expectation.rtol:g} relative, {expectation.atol:g} absolute"
    yield from _values(expectation.array)


def _values(array: Array) -> Iterator[str]:
    with np.printoptions(precision=7, linewidth=WIDTH - len(MARGIN), threshold=MAX_VALUES, edgeitems=2, suppress=False):
        for line in str(array).splitlines():
            yield f"{MARGIN}{line}".rstrip()


def _wrapped(line: str) -> Iterator[str]:
    yield from textwrap.wrap(line, WIDTH, subsequent_indent=MARGIN, break_long_words=False, break_on_hyphens=False)

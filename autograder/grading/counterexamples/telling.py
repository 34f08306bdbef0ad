"""What a counterexample looks like to a student: the snippet, then "yours" and "expected" beneath it.

Its input is no secret, so all that came of it may be shown; what student code chose is escaped and cut.
"""

from __future__ import annotations

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import Mismatch
from autograder.grading.counterexamples.trials import Trial, nested
from autograder.grading.remarks.wording import Place, in_file
from autograder.sandbox.calls import Array, Raised, Returned
from autograder.vocabulary.text import visible

MAX_SNIPPET = 1_200
MAX_SHOWN = 300
DIGITS = range(6, 18)


def told(trial: Trial, case: Case, wrong: Mismatch | Raised, place: Place = in_file) -> str:
    """The whole text; "" where the snippet would be too long to read."""
    where = ""
    if isinstance(wrong, Raised):
        expectation = next(one for one in case.expected if one.kind != "unchanged")
        yours, expected, where = exception_text(wrong), expected_text(expectation), line_text(wrong, place)
    else:
        expectation = wrong.expectation
        yours, expected = both(wrong)
    snippet = trial.text("" if isinstance(wrong, Raised) else expectation.name)
    if len(snippet) > MAX_SNIPPET:
        return ""
    return f"{snippet}\n  yours     {visible(yours, MAX_SHOWN)}{where}\n  expected  {visible(expected, MAX_SHOWN)}"


def both(mismatch: Mismatch) -> tuple[str, str]:
    """What came back and what should have, so that the difference can be seen."""
    expectation, returned = mismatch.expectation, mismatch.returned
    match mismatch.rung:
        case "returned" | "tensor":
            return returned_text(returned), expected_text(expectation)
        case "dtype":
            return f"dtype {returned.dtype}", f"dtype {expectation.dtype}"
        case "graph":
            return _graph(returned.requires_grad), _graph(bool(expectation.attached))
        case "error" | "fact":
            return observed_text(mismatch), expected_text(expectation)
    if returned.array is None or expectation.array is None:
        return returned_text(returned), expected_text(expectation)
    return _apart(returned.array, expectation.array)


def observed_text(mismatch: Mismatch) -> str:
    """A fact or an error as it was observed."""
    observed = mismatch.observed
    if mismatch.rung != "error":
        return "nothing" if observed is None else str(observed)
    if not isinstance(observed, dict):
        return "no exception"
    types = observed.get("types")
    name = types[0] if isinstance(types, list) and types else "an exception"
    return f"{name}: {observed.get('message')}"


def expected_text(expectation: Expectation) -> str:
    """What should have come back."""
    if expectation.array is not None:
        return nested(expectation.array, DIGITS[0])
    if expectation.kind == "error":
        mentions = " and ".join(repr(text) for text in expectation.value.get("mentions", ()))
        return str(expectation.value["type"]) + (f" that names {mentions}" if mentions else "")
    return "nothing" if expectation.value is None else str(expectation.value)


def returned_text(returned: Returned) -> str:
    """What came back, whatever it is."""
    if returned.kind == "none":
        return "None"
    if returned.array is None:
        return f"something of type {returned.type}"
    return nested(returned.array, DIGITS[0])


def exception_text(raised: Raised) -> str:
    """The exception as Python's last line says it."""
    return f"{raised.types[0]}: {raised.message}" if raised.message else raised.types[0]


def line_text(raised: Raised, place: Place) -> str:
    """The student's line that raised, on a line of its own."""
    if raised.line is None:
        return ""
    return f"\n            {place(raised.line)}{f': {visible(raised.code, 120)}' if raised.code else ''}"


def _graph(attached: bool) -> str:
    return "a tensor that requires a gradient" if attached else "a tensor without a graph"


def _apart(yours: Array, expected: Array) -> tuple[str, str]:
    """Both with as many digits as it takes to tell them apart."""
    with np.errstate(all="ignore"):
        expected = expected.astype(yours.dtype) if yours.dtype.kind == "f" else expected
    for digits in DIGITS:
        texts = nested(yours, digits), nested(expected, digits)
        if texts[0] != texts[1]:
            return texts
    return texts

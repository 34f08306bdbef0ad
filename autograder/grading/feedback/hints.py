"""A failure → what to think about, or nothing where the message has said it.

An item's own hint is about values: it follows a wrong value that nobody has explained, and nothing else. After another
kind of failure comes a hint that is true of every failure of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autograder.grading.cases import Case
from autograder.grading.compare import Mismatch, Rung
from autograder.grading.feedback.wording import first_wrong, is_near_miss
from autograder.grading.items import Item

CUT = "Look between inputs and result: detach, item, numpy, no_grad and a tensor made of numbers cut the graph."
CONSTANT = "Which of the inputs are constants here, whatever graph they carry?"
OF_GRADIENT = (
    "The value is right and its gradient is not: what is held constant that should not be, or should be and is not?"
)
NOT_FINITE = "The value is finite and its gradient is not: where and masks keep a value out, and not its derivative."
OF_TYPE = "Callers catch an exception by its type."
OF_TEXT = "Put what was given into the text of the exception, just as it was given."
PUBLIC_PASS = "The public cases of this item pass: try other sizes, dtypes and arguments than theirs."
VALUES: tuple[Rung, ...] = ("values", "finite")
OF_KIND: Mapping[Rung, str] = {
    "tensor": "Return a torch.Tensor: no list, no number, no array.",
    "dtype": "The values were not looked at yet: which operation names a dtype, or makes a tensor of numbers?",
    "shape": "Write down the shape after every step: where does an axis appear, vanish or move?",
    "purity": "A method that ends in an underscore, += and an assignment to x[...] change the caller's tensor.",
}


def hint_of_names(slugs: Sequence[str], hints: Mapping[str, str]) -> str:
    """The hints of the recognised mistakes, each once."""
    found = list(dict.fromkeys(hints[slug] for slug in slugs if slug in hints))
    return " Or: ".join(found[:2])


def hint_of_failure(item: Item, case: Case, mismatch: Mismatch, simpler: str = "") -> str:
    """The hint for the first failing case of an item; "" where its message says all that is known.

    simpler   an item of the same function that comes before and fails in the same way
    """
    if mismatch.diagnoses or is_near_miss(mismatch) or mismatch.rung == "fact":
        return ""
    if simpler:
        return f"{simpler} fails too: start there."
    match mismatch.rung:
        case "values" | "finite":
            return _of_values(item, case, mismatch)
        case "error":
            return _of_error(item, mismatch)
        case "returned":
            alone = sum(expectation.kind == "value" for expectation in case.expected) == 1
            return "Does every way through the function end in a return?" if alone else ""
        case "graph":
            return CUT if mismatch.expectation.attached else CONSTANT
        case "gradient":
            return _of_gradient(case, mismatch)
        case "tensor" if mismatch.returned.kind == "tensor":
            return ""
        case rung:
            return OF_KIND[rung]


def same_kind(one: Mismatch, other: Mismatch) -> bool:
    """Whether two failures are of one kind; numbers and what is no finite number are."""
    return one.rung == other.rung or (one.rung in VALUES and other.rung in VALUES)


def _of_values(item: Item, case: Case, mismatch: Mismatch) -> str:
    if case.visibility == "hidden":
        return PUBLIC_PASS if item.public else ""
    if place := first_wrong(mismatch):
        axis, index = place
        return f"At {axis} {index - 1} it is right, at {axis} {index} no longer. What happens between the two?"
    is_of_errors = any(expectation.kind == "error" for expectation in case.expected)
    return "" if is_of_errors or mismatch.right else item.hint


def _of_error(item: Item, mismatch: Mismatch) -> str:
    if not isinstance(mismatch.observed, dict):
        return item.hint
    types = mismatch.observed.get("types")
    return OF_TEXT if isinstance(types, list) and mismatch.expectation.value["type"] in types else OF_TYPE


def _of_gradient(case: Case, mismatch: Mismatch) -> str:
    if mismatch.returned.kind != "tensor":
        return CUT
    if not any(expectation.kind == "value" for expectation in case.expected):
        return ""
    finite = all(np.isfinite(difference.observed) for difference in mismatch.first)
    return OF_GRADIENT if finite else NOT_FINITE

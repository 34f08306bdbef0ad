"""A failure → what to think about, or nothing where the message has said it.

An item's own hint is about values: it follows a wrong value that nobody has explained, and nothing else. After another
kind of failure comes a hint that is true of every failure of that kind.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence

import numpy as np

from autograder.grading.cases import Case
from autograder.grading.compare import Mismatch, Rung
from autograder.grading.items import Item
from autograder.grading.remarks.facts import without_gradient
from autograder.grading.remarks.wording import asks_for_lists, first_wrong, is_near_miss
from autograder.sandbox.worker.calling import NUMPY, PYTHON, TORCH
from autograder.submissions.submission import Function
from autograder.vocabulary.text import visible

CUT = "Look between inputs and result: detach, item, numpy, no_grad and a tensor made of numbers cut the graph."
CONSTANT = "Which of the inputs are constants here, whatever graph they carry?"
OF_GRADIENT = (
    "The value is right and its gradient is not: what is held constant that should not be, or should be and is not?"
)
OVERFLOWN = "Which step makes it first: the logarithm of 0, an exponential beyond the dtype, 0/0, or inf - inf?"
NOT_FINITE = "The value is finite and its gradient is not: where and masks keep a value out, and not its derivative."
OF_TYPE = "Callers catch an exception by its type, and yours has another one."
OF_TEXT = "Your exception has the right type, and its text lacks what it should name, letter for letter."
PUBLIC_PASS = "The public cases of this item pass: try other sizes, dtypes and arguments than theirs."
OF_LENGTH = "One axis has another length than it should: which step gives it that length?"
VALUES: tuple[Rung, ...] = ("values", "finite")
OF_KIND: Mapping[Rung, str] = {
    "tensor": "Return a torch.Tensor: no list, no number, no array.",
    "dtype": "The values were not looked at yet: which operation names a dtype, or makes a tensor of numbers?",
    "shape": "Write down the shape after every step: where does an axis appear, vanish or move?",
    "purity": "A method that ends in an underscore, += and an assignment to x[...] change the caller's tensor.",
}
OF_ARRAYS: Mapping[Rung, str] = {
    **OF_KIND,
    "tensor": "What does the docstring say comes back, and what does the last line return?",
    "dtype": "The values were not looked at yet: which operation names a dtype, or makes an array of whole numbers?",
    "purity": "A method such as sort, += and an assignment to x[...] change the caller's array.",
}
OF_LISTS: Mapping[Rung, str] = {
    **OF_ARRAYS,
    "shape": "Count the entries after every step: where does one appear or vanish?",
    "purity": "Methods such as append, pop and sort, += and an assignment to x[...] change the caller's list.",
}
KINDS: Mapping[str, Mapping[Rung, str]] = {NUMPY: OF_ARRAYS, PYTHON: OF_LISTS}


def hint_of_names(slugs: Sequence[str], hints: Mapping[str, str]) -> str:
    """The hints of the recognised mistakes, each once."""
    found = list(dict.fromkeys(hints[slug] for slug in slugs if slug in hints))
    return " Or: ".join(found[:2])


def hint_of_called(item: Item) -> str:
    """The hint where an item fails of a function that the failing one may call."""
    return f"{item.id} fails too: if you call {item.function} here, start there."


def hint_of_defaults(
    failing: Sequence[Case], handed_out: Mapping[str, Function], written: Mapping[str, Function]
) -> str:
    """The hint where an item fails only in cases that leave a parameter to its default, and that is another.

    handed_out, written   the functions of the handout's module, and of the student's
    """
    if not {case.function for case in failing} <= handed_out.keys() & written.keys():
        return ""
    hints = {
        hint_of_default(one, *(found[one.function].defaults for found in (handed_out, written))) for one in failing
    }
    return hints.pop() if len(hints) == 1 else ""


def hint_of_default(case: Case, handed_out: Mapping[str, str], written: Mapping[str, str]) -> str:
    """The hint where a case leaves to its default a parameter whose default is another than in the handout.

    handed_out, written   parameter → its default, of the case's function, in the handout and in the student's file
    """
    left = case.params.get("defaults")
    given = {*case.inputs, *_keys(case.params)} - (set(left) if isinstance(left, list) else set())
    for name, default in handed_out.items():
        if name not in given and name in written and literal_eval(written[name]) != literal_eval(default):
            found = visible(written[name], 40)
            return (
                f"By default {name} is {default} in the handout; in your first line of {case.function} it is {found}."
            )
    return ""


def _keys(params: object) -> set[str]:
    """The names of all that is handed over, however deep."""
    if isinstance(params, Mapping):
        return set(params).union(*map(_keys, params.values()))
    return set().union(*map(_keys, params)) if isinstance(params, (list, tuple)) else set()


def hint_of_failure(
    item: Item, case: Case, mismatch: Mismatch, simpler: str = "", *, later: bool = False, told: bool = False
) -> str:
    """The hint for the first failing case of an item; "" where its message says all that is known.

    simpler   an item of the same function that fails in the same way, in a public case and before this one
    later     whether the item's first case is right, or the answer is explained: its own hint is about something else
    told      whether the message says where to look
    """
    if mismatch.diagnoses or is_near_miss(mismatch) or mismatch.rung == "fact":
        return ""
    own = "" if later else item.hint
    if not simpler and not told and mismatch.rung in VALUES and (hint := _of_this(item, case, mismatch)):
        return hint
    if simpler:
        return f"{simpler} fails too: start there."
    if told:
        return ""
    match mismatch.rung:
        case "values" | "finite":
            return _of_values(own, case, mismatch)
        case "error":
            return _of_error(own, mismatch)
        case "returned":
            alone = sum(expectation.kind == "value" for expectation in case.expected) == 1
            return "Does every way through the function end in a return?" if alone else ""
        case "graph":
            return CUT if mismatch.expectation.attached else CONSTANT
        case "gradient":
            return _of_gradient(own, case, mismatch)
        case "shape" if _one_length_differs(mismatch):
            return OF_LENGTH
        case _:
            return _of_kind(own, case.values, mismatch)


def _of_this(item: Item, case: Case, mismatch: Mismatch) -> str:
    """What the item says of the value that is wrong, or of the case; "" where it says nothing of either."""
    return item.hints.get(mismatch.expectation.name) or item.hints.get(case.id) or case.hint


def hint_of_hidden(item: Item, mismatch: Mismatch | None, simpler: str = "", values: str = TORCH) -> str:
    """The hint for an item that fails in hidden cases alone: nothing that its numbers decide.

    simpler   an item of the same function that fails in a public case
    values    what the case is of: tensors, arrays, or lists and numbers
    """
    if simpler:
        return f"{simpler} fails too: start there."
    if mismatch is not None and mismatch.rung in OF_KIND:
        return _of_kind("", values, mismatch)
    return PUBLIC_PASS if item.public or item.laws else ""


def same_kind(one: Mismatch | None, other: Mismatch | None) -> bool:
    """Whether two failures are of one kind; numbers and what is no finite number are. Without an answer none is."""
    if one is None or other is None:
        return False
    return one.rung == other.rung or (one.rung in VALUES and other.rung in VALUES)


def may_share_a_cause(one: Mismatch | None, other: Mismatch | None) -> bool:
    """Whether one fault may be behind both: a check that is missing makes no value wrong, nor the other way round."""
    return _is_of_refusal(one) == _is_of_refusal(other)


def _is_of_refusal(mismatch: Mismatch | None) -> bool:
    return mismatch is not None and mismatch.rung == "error"


def is_of_numbers(mismatch: Mismatch | None) -> bool:
    """Whether values came back and are wrong: of a result, or of a gradient that is there."""
    return mismatch is not None and (mismatch.rung in VALUES or (mismatch.rung == "gradient" and bool(mismatch.first)))


def is_of_form(mismatch: Mismatch) -> bool:
    """Whether no number was looked at: what came back is of another kind, or carries no graph."""
    lost = mismatch.rung == "gradient" and mismatch.returned.kind != "tensor"
    return lost or mismatch.rung in {*OF_KIND, "returned", "graph"}


def _of_kind(own: str, values: str, mismatch: Mismatch) -> str:
    """A hint that is true of every failure of that kind; of lists, which no tensor's hint is about, the item's own."""
    if asks_for_lists(mismatch.expectation):
        return own
    unread = mismatch.rung == "tensor" and mismatch.returned.kind == "tensor"
    is_argument = mismatch.rung != "purity" or mismatch.expectation.what.isidentifier()
    return "" if unread or not is_argument else KINDS.get(values, OF_KIND).get(mismatch.rung, "")


def _one_length_differs(mismatch: Mismatch) -> bool:
    """Whether a shape is right but for the size of one axis; lists have no axes."""
    array = mismatch.expectation.array
    wanted, found = () if array is None else array.shape, mismatch.returned.shape
    differing = sum(one != other for one, other in zip(wanted, found, strict=False))
    return len(wanted) == len(found) and differing == 1 and not asks_for_lists(mismatch.expectation)


def _of_values(own: str, case: Case, mismatch: Mismatch) -> str:
    if place := first_wrong(mismatch):
        axis, index = place
        return f"At {axis} {index - 1} it is right, at {axis} {index} no longer. What happens between the two?"
    is_of_errors = any(expectation.kind == "error" for expectation in case.expected)
    if is_of_errors or mismatch.right:
        return ""
    return own or (OVERFLOWN if mismatch.rung == "finite" else "")


def _of_error(own: str, mismatch: Mismatch) -> str:
    if not isinstance(mismatch.observed, dict):
        return own
    types = mismatch.observed.get("types")
    return OF_TEXT if isinstance(types, list) and mismatch.expectation.value["type"] in types else OF_TYPE


def _of_gradient(own: str, case: Case, mismatch: Mismatch) -> str:
    if mismatch.returned.kind != "tensor":
        return "" if without_gradient(case, mismatch, reveal=False) else CUT
    if not any(expectation.kind == "value" for expectation in case.expected):
        return own
    finite = all(np.isfinite(difference.observed) for difference in mismatch.first)
    return OF_GRADIENT if finite else NOT_FINITE

"""Choose the hint that follows a failed item.

A hint is shown where this submission's failure bears it out. An item's own hint is about values: it follows a wrong
value that nobody has explained, and nothing else. Where nothing is known, the message states the facts alone.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from autograder.grading.assignment import Item
from autograder.grading.compare import Mismatch, Rung
from autograder.grading.fixtures import Case
from autograder.grading.judging import Judged
from autograder.grading.wording import without_gradient
from autograder.sandbox.worker.calling import NUMPY, PYTHON
from autograder.submissions.submission import Function
from autograder.vocabulary.report import START_THERE, Verdict
from autograder.vocabulary.text import visible

RESULT = "result"  # what is compared as it is: text, truth values, lists, dictionaries
IN_TURN = ("step", "record", "update", "epoch")  # axes of what happens one after the other

VALUES: tuple[Rung, ...] = ("values", "finite")
NAMED: tuple[Verdict, ...] = ("failed", "raised")  # work that is not there, or never ended, is no known mistake
CUT = "Look between inputs and result: detach, item, numpy, no_grad and a tensor made of numbers cut the graph."
BACKWARD = "Your function calls backward itself. Return the value with its graph: backward is the caller's part."
NO_GRAD_FN = "does not have a grad_fn"  # how torch says that backward finds no graph
NO_GRAPH = "backward finds no graph here. Which tensor should require grad? Or do detach, item or no_grad cut it off?"
ALL_NEAR = "All values are almost right: look at constants, divisors and precision."
OF_GRADIENT = "The value is right and its gradient is not. Is something constant that should not be, or the other way?"
NOT_FINITE = "The value is finite and its gradient is not: where and masks hide a value, and not its derivative."
OVERFLOWN = "Which step makes it first: the logarithm of 0, an exponential beyond the dtype, 0/0, or inf - inf?"
OF_KIND: Mapping[Rung, str] = {  # true of every failure of that kind, of a hidden case too
    "tensor": "Return a torch.Tensor: no list, no number, no array.",
    "dtype": "The values are not compared yet. Which operation sets a dtype, or makes a tensor of numbers?",
    "shape": "Write down the shape after every step: where does an axis appear, vanish, move or change its length?",
    "purity": "A method that ends in an underscore, += and an assignment to x[...] change the caller's tensor.",
}
OF_ARRAYS: Mapping[Rung, str] = {
    **OF_KIND,
    "tensor": "What does the docstring say comes back, and what does the last line return?",
    "dtype": "The values are not compared yet. Which operation sets a dtype, or makes an array of whole numbers?",
    "purity": "A method such as sort, += and an assignment to x[...] change the caller's array.",
}
OF_LISTS: Mapping[Rung, str] = {
    **OF_ARRAYS,
    "shape": "Count the entries after every step: where does one appear or vanish?",
    "purity": "Methods such as append, pop and sort, += and an assignment to x[...] change the caller's list.",
}


@dataclass(frozen=True)
class Failure:
    """What is known of an item that fails; `first` is the case that its message is about.

    before         how many cases of the item come before it and are right
    names          the known mistakes that explain the item, with their hints
    updates        what the weights of a run tell; "" where they tell nothing
    other_default  a parameter whose default is another than in the handout, where all failing cases leave it out
    elsewhere      the item to start with, where this one can't count or the student's own code calls that function
    is_first       whether no earlier item of the function fails without a name: what is asked later may be right
    all_near       whether all that is wrong in the function's public cases is nearly right
    law_alone      whether all cases of the function that fail are of one law: what that varies is the cause
    code           how the student wrote the function
    """

    item: Item
    first: Judged
    before: int = 0
    names: Sequence[str] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    updates: str = ""
    other_default: str = ""
    elsewhere: str = ""
    is_first: bool = True
    all_near: bool = False
    law_alone: bool = False
    code: str = ""


def hint_of(failure: Failure) -> str:
    """Choose the hint of a failure, and add where to start."""
    start = f"{failure.elsewhere}{START_THERE}" if failure.elsewhere else ""
    chosen = next((hint for applies, hint in _rules(failure) if applies), "")
    return f"{chosen} {start}".strip()


def _rules(failure: Failure) -> Iterator[tuple[object, str]]:
    """Yield whether a rule applies, and its hint: the first that applies is it. It is "" where the message says all."""
    first, item, mismatch = failure.first, failure.item, failure.first.mismatch
    case, is_hidden = first.case, first.result.visibility == "hidden"
    hints = list(dict.fromkeys(failure.hints[slug] for slug in failure.names if slug in failure.hints))
    several = f"This has one of two causes. {' Or: '.join(hints)}" if len(hints) == 2 else ""
    yield failure.names, hints[0] if len(hints) == 1 else several  # of more none: it may be the third
    yield failure.other_default, failure.other_default
    asks_graph = any(e.attached or (e.kind == "gradient" and case.probe == "call") for e in case.expected)
    is_cut = mismatch is None or mismatch.rung in ("returned", "tensor", "graph")
    is_cut |= mismatch is not None and mismatch.rung == "gradient" and mismatch.returned.kind != "tensor"
    yield not is_hidden and ".backward(" in failure.code and asks_graph and is_cut, BACKWARD
    yield first.withheld or failure.elsewhere, ""  # what is called is wrong, which explains it
    of_kind = _of_kind(case, mismatch) if mismatch else ""
    yield is_hidden, of_kind  # nothing that its numbers decide
    if mismatch is None:
        yield NO_GRAD_FN in first.result.message, NO_GRAPH
        return
    yield mismatch.diagnoses or failure.updates, ""
    yield failure.all_near, ALL_NEAR
    rung, expectation, returned = mismatch.rung, mismatch.expectation, mismatch.returned
    is_value, is_gradient = rung in VALUES, rung == "gradient"
    of_value = item.hints.get(expectation.name) or item.hints.get(case.id) if is_value else ""
    of_law = of_value or (case.hint if failure.law_alone else "")
    of_item = item.hint if failure.is_first and not failure.before else ""
    judged = {other.kind for other in case.expected if "values" not in other.forgiven}
    yield rung == "purity" and of_kind, of_kind
    yield of_law and (is_value or failure.before), of_law
    yield rung == "fact", of_item if expectation.name == RESULT else ""
    yield is_value and ("error" in judged or mismatch.right), ""
    yield is_value, of_item or (OVERFLOWN if rung == "finite" else "")
    yield rung == "error", "" if isinstance(mismatch.observed, dict) else of_item
    yield rung == "graph" and expectation.attached, CUT
    yield is_gradient and returned.kind != "tensor", "" if without_gradient(case, mismatch, reveal=False) else CUT
    yield is_gradient and "value" not in judged, of_item
    is_finite = all(np.isfinite(place.observed) for place in mismatch.first)
    yield is_gradient, OF_GRADIENT if is_finite else NOT_FINITE
    yield of_kind, of_kind


def _of_kind(case: Case, mismatch: Mismatch) -> str:
    rung, expectation = mismatch.rung, mismatch.expectation
    is_unread = rung == "tensor" and mismatch.returned.kind == "tensor"  # too large, or sparse
    is_no_argument = rung == "purity" and not expectation.what.isidentifier()
    is_in_turn = rung == "shape" and expectation.axes[:1] and expectation.axes[0] in IN_TURN  # too many turns
    if is_unread or is_no_argument or is_in_turn:
        return ""
    return {NUMPY: OF_ARRAYS, PYTHON: OF_LISTS}.get(case.values, OF_KIND).get(rung, "")


def item_to_start_with(
    items: Sequence[Item],
    first: Judged,
    judged: Mapping[str, Sequence[Judged]],
    code: Mapping[str, str],
    callers: Collection[str] = (),
) -> str:
    """Return the item that proves to be in the way of the one whose `first` wrong case this is; "" where none is.

    Of an item that is right and does not count yet, the first of its function whose answers are wrong. Of any other,
    the first of another function that the student's own `code` calls and that returns wrong values in a public case,
    or what is in the way of that one in turn; `callers` are the functions on the way there.
    """
    item = next(item for item in items if item.id == first.case.item)
    failing = [
        (other, wrong)
        for other in items
        if other.id != item.id
        and (wrong := next((one for one in judged.get(other.id, ()) if not one.passed and not one.withheld), None))
    ]
    if first.withheld:
        return next((other.id for other, _ in failing if other.function == item.function), "")
    for other, wrong in failing:
        # where no stand-in takes its place, the student's own function is what is called
        answered = {name for name, *_ in first.case.params.get("answered", ())}
        is_own = other.function in item.calls or (first.case.probe == "call" and other.function not in answered)
        is_called = is_own and re.search(rf"\b{re.escape(other.function)}\s*\(", code.get(item.function, ""))
        is_value = wrong.mismatch is None or wrong.mismatch.rung in VALUES
        is_next = other.function not in (item.function, *callers)
        if is_next and is_called and is_value and wrong.result.visibility == "public":
            return item_to_start_with(items, wrong, judged, code, (*callers, item.function)) or other.id
    return ""


def other_default(failing: Sequence[Case], handed_out: Mapping[str, Function], written: Mapping[str, Function]) -> str:
    """Say which default is another than in the handout, of a parameter that no failing case of a function names.

    handed_out, written   the functions of the handout's module, and of the student's
    """
    function = failing[0].function
    if function not in handed_out or function not in written:
        return ""
    own, named = written[function].defaults, json.dumps([[*case.inputs, case.params] for case in failing])
    for name, default in handed_out[function].defaults.items():
        if name in own and literal_eval(own[name]) != literal_eval(default) and f'"{name}"' not in named:
            differs = f"in your first line of {function} it is {visible(own[name], 40)}."
            return f"By default {name} is {default} in the handout; {differs}"
    return ""

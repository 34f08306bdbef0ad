"""Choose the hint that follows a failed item: one ordered table, of which the first row that holds is said.

A hint is shown where this submission's failure bears it out. An item's own hint is about values: it follows a wrong
value that nobody has explained, and nothing else. Where nothing is known, the message states the facts alone.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from autograder.grading.assignment import Item
from autograder.grading.clues import explains
from autograder.grading.compare import Mismatch, Rung
from autograder.grading.fixtures import Case
from autograder.grading.judging import Judged
from autograder.grading.wording import asks_for_lists, is_near_miss, without_gradient
from autograder.sandbox.worker.calling import NUMPY, PYTHON
from autograder.submissions.submission import Function
from autograder.vocabulary.report import Verdict
from autograder.vocabulary.text import visible

START_THERE = "fails too: start there."
PUBLIC_PASS = "The public cases of this item pass, and a hidden one does not."
IN_TURN = ("step", "record", "update", "epoch")  # axes of what happens one after the other
CUT = "Look between inputs and result: detach, item, numpy, no_grad and a tensor made of numbers cut the graph."
CONSTANT = "Which inputs are constants here, whatever graph they carry?"
OF_GRADIENT = "The value is right and its gradient is not. Is something constant that should not be, or the other way?"
NOT_FINITE = "The value is finite and its gradient is not: where and masks hide a value, and not its derivative."
OVERFLOWN = "Which step makes it first: the logarithm of 0, an exponential beyond the dtype, 0/0, or inf - inf?"
OF_TYPE = "Callers catch an exception by its type, and yours has another type."
OF_TEXT = "Your exception has the right type. Its text should name this, letter for letter."
ALONE = "By itself, in a fresh Python, this call is right. What does your function keep from one call to the next?"
BACKWARD = "Your function calls backward itself. Return the value with its graph: backward is the caller's part."

VALUES: tuple[Rung, ...] = ("values", "finite")
NAMED: tuple[Verdict, ...] = ("failed", "raised")  # work that is not there, or never ended, is no known mistake
OF_KIND: Mapping[Rung, str] = {  # true of every failure of that kind
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
    reason         what can be seen of a mistake that has no name
    other_default  a parameter whose default is another than in the handout, where all failing cases leave it out
    elsewhere      the item to start with, where this one can't count or the student's own code calls that function
    right_alone    whether its first case is right where no call came before it
    is_first       whether no earlier item of the function fails without a name: what is asked later may be right
    law_alone      whether all cases of the function that fail are of one law: what that varies is the cause
    code           how the student wrote the function
    """

    item: Item
    first: Judged
    before: int = 0
    names: Sequence[str] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    updates: str = ""
    reason: str = ""
    other_default: str = ""
    elsewhere: str = ""
    right_alone: bool = False
    is_first: bool = True
    law_alone: bool = False
    code: str = ""

    @property
    def case(self) -> Case:
        """The case that failed first."""
        return self.first.case

    @property
    def rung(self) -> Rung | None:
        """On which rung the answer breaks; None where there is no answer."""
        return None if self.first.mismatch is None else self.first.mismatch.rung

    @property
    def mismatch(self) -> Mismatch:
        """What the answer breaks, where there is one."""
        assert self.first.mismatch is not None
        return self.first.mismatch

    @property
    def hidden(self) -> bool:
        """Whether no public case failed."""
        return self.first.result.visibility == "hidden"

    @property
    def names_cause(self) -> bool:
        """Whether the message says the cause already."""
        return bool(self.mismatch.diagnoses or is_near_miss(self.mismatch) or self.rung == "fact")

    @property
    def own(self) -> str:
        """What the author says of this value or of this case, or a law of what it alone varies."""
        mismatch, item = self.mismatch, self.item
        of_law = self.case.hint if self.law_alone else ""
        if mismatch.rung in VALUES:
            return item.hints.get(mismatch.expectation.name) or item.hints.get(self.case.id) or of_law
        return of_law if self.before else ""

    @property
    def first_wrong_step(self) -> int:
        """The index of the first wrong value of what happens in turn and begins right; else 0."""
        axes, first = self.mismatch.expectation.axes, self.mismatch.first
        is_in_turn = self.rung in VALUES and axes[:1] and axes[0] in IN_TURN and first
        return first[0].index[0] if is_in_turn else 0

    @property
    def of_item(self) -> str:
        """The item's own hint, where its first case fails and neither the values nor an earlier item explain it."""
        return self.item.hint if self.is_first and not self.before and not explains(self.reason) else ""

    @property
    def raised(self) -> Literal["", "type", "text"]:
        """What is wrong with an exception that was raised: its type, or its text; "" where none was."""
        if self.rung != "error" or not isinstance(self.mismatch.observed, dict):
            return ""
        types = self.mismatch.observed.get("types")
        return "text" if isinstance(types, list) and self.mismatch.expectation.value["type"] in types else "type"

    @property
    def judges(self) -> set[str]:
        """The kinds of things that the case judges."""
        return {expectation.kind for expectation in self.case.expected if "values" not in expectation.forgiven}

    @property
    def backward_inside(self) -> bool:
        """Whether the function calls backward where its caller does, and no value with a graph comes back."""
        asked = any(e.attached or (e.kind == "gradient" and self.case.probe == "call") for e in self.case.expected)
        is_lost = self.rung in (None, "returned", "tensor", "graph") or _lost_gradient(self)
        return asked and is_lost and ".backward(" in self.code


def _hints_of_mistakes(failure: Failure) -> str:
    """Say the hint of the mistake; of two that return the same everywhere both, of more none: it may be the third."""
    hints = list(dict.fromkeys(failure.hints[slug] for slug in failure.names if slug in failure.hints))
    if len(hints) == 2:
        return f"This has one of two causes. {hints[0]} Or: {hints[1]}"
    return hints[0] if len(hints) == 1 else ""


def _lost_gradient(failure: Failure) -> bool:
    return failure.rung == "gradient" and failure.mismatch.returned.kind != "tensor"


def _of_kind(failure: Failure) -> str:
    expectation = failure.mismatch.expectation
    if asks_for_lists(expectation):
        return "" if failure.hidden else failure.of_item
    is_unread = failure.rung == "tensor" and failure.mismatch.returned.kind == "tensor"  # too large, or sparse
    is_no_argument = failure.rung == "purity" and not expectation.what.isidentifier()
    is_in_turn = failure.rung == "shape" and expectation.axes[:1] and expectation.axes[0] in IN_TURN  # too many turns
    if failure.rung is None or is_unread or is_no_argument or is_in_turn:
        return ""
    return {NUMPY: OF_ARRAYS, PYTHON: OF_LISTS}.get(failure.case.values, OF_KIND).get(failure.rung, "")


def _step(failure: Failure) -> str:
    axis, index = failure.mismatch.expectation.axes[0], failure.first_wrong_step
    return f"At {axis} {index - 1} it is right, and at {axis} {index} it is wrong. What happens between the two?"


Condition = Callable[[Failure], object]
Hint = str | Callable[[Failure], str]
HINTS: tuple[tuple[Condition, Hint], ...] = (
    # what is known of the whole item
    (lambda f: f.first.withheld, ""),
    (lambda f: f.names, _hints_of_mistakes),
    (lambda f: f.other_default, lambda f: f.other_default),
    (lambda f: f.right_alone, ALONE),
    (lambda f: not f.hidden and f.backward_inside, BACKWARD),
    (lambda f: f.elsewhere, ""),  # what is called is wrong, which explains it: nothing of this function is borne out
    # hidden cases alone fail: nothing that their numbers decide
    (lambda f: f.hidden and f.rung in OF_KIND and _of_kind(f), _of_kind),
    (lambda f: f.hidden and f.first.result.verdict in NAMED and (f.item.public or f.item.laws), PUBLIC_PASS),
    (lambda f: f.hidden or f.rung is None, ""),
    # a public case returned something else than it should
    (lambda f: f.names_cause or f.updates, ""),
    (lambda f: f.rung == "purity" and _of_kind(f), _of_kind),
    (lambda f: f.own, lambda f: f.own),
    (lambda f: f.first_wrong_step, _step),
    (lambda f: f.rung in VALUES and ("error" in f.judges or f.mismatch.right), ""),
    (lambda f: f.rung in VALUES and f.of_item, lambda f: f.of_item),
    (lambda f: f.rung == "finite", OVERFLOWN),
    (lambda f: f.raised == "text", OF_TEXT),
    (lambda f: f.raised == "type", OF_TYPE),
    (lambda f: f.rung == "error", lambda f: f.of_item),
    (lambda f: f.rung == "graph" and f.mismatch.expectation.attached, CUT),
    (lambda f: f.rung == "graph", CONSTANT),
    (lambda f: _lost_gradient(f) and without_gradient(f.case, f.mismatch, reveal=False), ""),
    (_lost_gradient, CUT),
    (lambda f: f.rung == "gradient" and "value" not in f.judges, lambda f: f.of_item),
    (lambda f: f.rung == "gradient" and all(np.isfinite(place.observed) for place in f.mismatch.first), OF_GRADIENT),
    (lambda f: f.rung == "gradient", NOT_FINITE),
    (lambda f: f.rung in OF_KIND, _of_kind),
)


def hint_of(failure: Failure) -> str:
    """Choose the hint of the first row that holds, and add where to start."""
    hint = next((hint for condition, hint in HINTS if condition(failure)), "")
    chosen = hint if isinstance(hint, str) else hint(failure)
    start = f"{failure.elsewhere} {START_THERE}" if failure.elsewhere and not failure.names else ""
    return f"{chosen} {start}".strip()


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
        is_own = other.function in item.calls or (first.case.probe == "call" and not first.case.params.get("stand_ins"))
        is_called = is_own and re.search(rf"\b{re.escape(other.function)}\s*\(", code.get(item.function, ""))
        is_value = wrong.mismatch is None or wrong.mismatch.rung in VALUES
        is_next = other.function not in (item.function, *callers)
        if is_next and is_called and is_value and wrong.result.visibility == "public":
            return item_to_start_with(items, wrong, judged, code, (*callers, item.function)) or other.id
    return ""


def other_default(failing: Sequence[Case], handed_out: Mapping[str, Function], written: Mapping[str, Function]) -> str:
    """Say which default is another than in the handout, where all failing cases leave that parameter out.

    handed_out, written   the functions of the handout's module, and of the student's
    """
    sentences = set()
    for case in failing:
        if case.function not in handed_out or case.function not in written:
            return ""
        usual, own = handed_out[case.function].defaults, written[case.function].defaults
        without = [case.params.get("defaults"), *(c.get("without") for c in case.params.get("also", {}).values())]
        left_out = {name for names in without if isinstance(names, list) for name in names}
        given = {*case.inputs, *_keys(case.params)} - left_out
        differing = (
            f"By default {name} is {default} in the handout; in your first line of {case.function} it is "
            f"{visible(own[name], 40)}."
            for name, default in usual.items()
            if name not in given and name in own and literal_eval(own[name]) != literal_eval(default)
        )
        sentences.add(next(differing, ""))
    return sentences.pop() if len(sentences) == 1 else ""


def _keys(params: object) -> set[str]:
    """Collect the names of all that is handed over, however deep."""
    if isinstance(params, Mapping):
        return set(params).union(*map(_keys, params.values()))
    return set().union(*map(_keys, params)) if isinstance(params, (list, tuple)) else set()

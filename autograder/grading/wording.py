"""Write what went wrong in a case as sentences that a student can act on.

Of a hidden case nothing is told that the student's code chose: a value, a type's name, a shape, a line, how many values
differ and where could each carry the inputs out. It is told which kind of thing is wrong, in words that stand here or
in the stored case, and what should be.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.grading.compare import Mismatch, alike, expected_array, right_places
from autograder.grading.fixtures import Case, Expectation
from autograder.sandbox.calls import Observation, Outcome, Raised
from autograder.sandbox.worker.calling import NUMPY, PYTHON, PYTHON_KEY, TORCH
from autograder.vocabulary.text import visible

UNTOLD = " Which one and where is not told of a hidden case."
REFUSED = "Graded code runs in a sandbox that refuses files, new processes and the network; the answer needs none."
SIGNS_OF_REFUSAL = ("Operation not permitted", "Permission denied", "Read-only file system", "Parent directory ")
MAX_MESSAGE = 2_000
LONG_MESSAGE = 200  # characters of an exception's text; of a longer one whole sentences are quoted
MAX_RIGHT = 4
MAX_LISTED = 160  # characters
MAX_SEEN = 200
MAX_DIAGNOSES = 2
MAX_DEPTH = 8
NEAR_MISS = 1e-3
MORE_DIGITS = (7, 10, 13, 17)  # as many as it takes to tell two numbers apart
LONG_RESULT = 120  # characters of two results together
LONG = 20  # characters of an entry that is not written twice in a row
LISTS = ("list", "tuple")
LISTED = ("a list", "a dictionary")  # kinds of what has several parts, in the words of probes
SINGLE = ("a tensor", "a number", "a NumPy array")  # kinds of what is one part
NO_KIND = ("nothing", "NoneType")
ASIDE = re.compile(r", \{expected\} times here| \(\{expected\}(?: in all)?\)")  # a claim is complete without it

Place = Callable[[int], str]


def in_file(line: int) -> str:
    """Say where a line stands that was handed in as it is graded."""
    return f"Line {line} of your file"


# A case without an answer


def about_outcome(case: Case, outcome: Outcome, timeout: float, place: Place = in_file) -> str:
    """Say why there is nothing to compare; `place` says where a line of the graded text was written."""
    function, reveal = case.function, case.visibility == "public"
    if outcome.exceeded:
        return f"{function} {visible(outcome.exceeded, 200)}."
    match outcome.status:
        case "missing":
            return f"{function} is not defined."
        case "timed_out":
            return f"{function} had not finished after {timeout:g} seconds. Is there a loop that never ends?"
        case "out_of_memory":
            where = _line(outcome.raised, place) if reveal else ""
            return f"{function} asked for more memory than it may have.{where}"
        case "crashed":
            return f"{function} ended the Python process{f': {visible(outcome.detail, 200)}' if reveal else ''}."
        case "not_run":
            return f"Not run: {visible(outcome.detail, 200)}."
    if reveal or is_unfinished(outcome.raised):
        return about_exception(function, outcome.raised, place)
    return f"{function} raised an exception.{UNTOLD}"


def about_exception(subject: str, raised: Raised | None, place: Place = in_file) -> str:
    """Give the exception's type and text, and the student's line."""
    if raised is None:
        return f"{subject} could not be called."
    if is_unfinished(raised):
        return f"{subject} is not implemented yet."
    if raised.line is None and raised.probe_line is not None:  # a driver's line, to which what it called gave back
        subject = f"What uses {subject}"
    message = visible(raised.message, 300)
    if len(message) > LONG_MESSAGE and (sentence := message[:LONG_MESSAGE].rfind(". ")) > 0:
        message = message[: sentence + 1]  # what follows is of rarer causes
    text = f": {message}" if message else ""
    # torch makes a RuntimeError of what the sandbox refuses, where a file cannot be written
    is_refusal = "OSError" in raised.types or any(sign in raised.message for sign in SIGNS_OF_REFUSAL)
    refused = f" {REFUSED}" if is_refusal else ""
    return f"{_ended(f'{subject} raised {visible(raised.types[0], 80)}{text}')}{refused}{_line(raised, place)}"


def is_unfinished(raised: Raised | None) -> bool:
    """Tell whether this is the stub's own exception."""
    return raised is not None and raised.types[0] == "NotImplementedError"


def _line(raised: Raised | None, place: Place) -> str:
    if raised is None or raised.line is None:
        return ""
    code = f":\n  {visible(raised.code, 120)}" if raised.code else "."
    return f"\n{place(raised.line)}{code}"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "…", ":")) else f"{sentence}."


# A wrong answer


def about_mismatch(case: Case, mismatch: Mismatch) -> str:
    """Say what differs, where, and what was allowed."""
    reveal = case.visibility == "public"
    lines = [_sentence(case, mismatch, reveal=reveal)]
    if mismatch.first and reveal:
        lines += table(mismatch)
    if mismatch.rung != "fact" or _is_unseen(mismatch.observed):  # else the message is a cause, and the rest follows
        more = mismatch.diagnoses[: MAX_DIAGNOSES if reveal else 1]
        lines += [about_fact(expectation, observed, reveal=reveal) for expectation, observed in more]
    return visible("\n".join(lines), MAX_MESSAGE, newlines=True)


def which_case(case: Case, before: int) -> str:
    """Say what is special about a public case, where so many cases of its item come before it and are right."""
    if not before or case.visibility == "hidden":
        return ""
    right = "The first case is right." if before == 1 else f"The first {before} cases are right."
    return _ended(f"{right} This one is not: {visible(case.title, 200)}") + "\n"


def _sentence(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    expectation, returned, what = mismatch.expectation, mismatch.returned, mismatch.expectation.what
    match mismatch.rung:
        case "returned":
            kind = mismatch.observed  # of what came in place of several parts, where a probe says so
            if isinstance(kind, str) and kind not in NO_KIND and len(case.params.get("returns", ())) > 1:
                came = f"this came back: {visible(kind, 80)}" if reveal else "something else came back"
                return f"{case.function} should return {_several_parts(case)}, but {came}."
            return f"{case.function} returned nothing where {what} should be."
        case "tensor":
            return _not_a_tensor(case, mismatch, reveal=reveal)
        case "dtype":
            yours = f"but yours has {visible(returned.dtype, 40)}" if reveal else "and yours has another"
            return f"{what} should have dtype {expectation.dtype}, {yours}."
        case "shape" if not reveal:
            return f"{what} should have shape {named_shape(expectation)}, and yours has another."
        case "shape":
            shape = visible(str(list(returned.shape)), 120)
            if case.values == TORCH or (_shape(expectation) and returned.shape):
                return f"{what} should have shape {named_shape(expectation)}, but yours has {shape}."
            kind = "an array" if case.values == NUMPY else "a list"
            came = f"{kind} of shape {shape}" if returned.shape else "a number"
            return f"{what} should be {_kind_of_numbers(case, expectation)}, but {came} was found."
        case "gradient" if returned.kind != "tensor":
            cut = f"{what} does not exist: the graph is cut."
            return without_gradient(case, mismatch, reveal=reveal) or cut
        case "finite" | "values" | "gradient" if not reveal:
            shape = named_shape(expectation)
            return (
                f"{what} {shape}: not all values are right." if shape != "[]" else f"The value of {what} is not right."
            )
        case "finite" | "values" | "gradient":
            return _wrong_values(case, mismatch)
        case "graph" if expectation.attached:
            return f"{what} should carry a graph: the value is right, but nothing can be learned from it."
        case "graph":
            return f"{what} should not require a gradient."
        case "purity" if what.isidentifier():
            return f"{case.function} changed its argument {what}. Compute something new instead."
        case "purity":
            return f"{case.function} changed {what}, which it should leave alone."
        case "error":
            return _wrong_error(expectation, mismatch.observed, reveal=reveal)
        case "fact":
            return about_fact(expectation, mismatch.observed, reveal=reveal)


def without_gradient(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    """Say why what came back can have no gradient, or came in another number of parts; "" where neither is so."""
    kind, names = mismatch.observed, case.params.get("returns", ())
    right = SINGLE if len(names) < 2 else (f"a tuple of {len(names)}", *LISTED)
    if not isinstance(kind, str) or kind in right:
        return ""
    asked = "one tensor" if len(names) < 2 else _several_parts(case)
    came = f"{visible(kind, 80)} came back" if reveal else "something else came back"
    return f"{mismatch.expectation.what} does not exist: {case.function} should return {asked}, but {came}."


def _several_parts(case: Case) -> str:
    """Name the parts that a case asks for, of their kind if it judges that: `2 values (low, high)`."""
    names = case.params.get("returns", ())
    kind = next((one.value for one in case.expected if one.name == "kind"), f"{len(names)} values")
    return f"{kind}{f' of {len(names)}' if kind in LISTED else ''} ({', '.join(names)})"


def _not_a_tensor(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    what, returned = mismatch.expectation.what, mismatch.returned
    seen = visible(returned.type, 80)
    if reveal and mismatch.diagnoses:
        return f"{what} cannot be read: in its place there is something else ({seen})."
    if returned.kind == "tensor":
        why = "the tensor is too large, or not dense" if case.values == TORCH else "there are too many"
        return f"The values of {what} cannot be read: {why}."
    if case.values != TORCH and returned.type in LISTS:
        seen += " of other things than numbers, or of rows that differ in length"
    asked = "a torch.Tensor" if case.values == TORCH else _kind_of_numbers(case, mismatch.expectation)
    return f"{what} should be {asked}, but {f'this was found: {seen}' if reveal else 'something else was found'}."


def _kind_of_numbers(case: Case, expectation: Expectation) -> str:
    """Say what kind of thing should come back, in the words of NumPy or plain Python."""
    axes = len(_shape(expectation))
    if not axes:
        return "a number"
    lists = "a list of numbers" if axes == 1 else "a list of rows of numbers"
    return lists if case.values == PYTHON else "an array of numbers"


def _shape(expectation: Expectation) -> tuple[int, ...]:
    return () if expectation.array is None else expectation.array.shape


def named_shape(expectation: Expectation) -> str:
    """Write the expected shape with the names of its axes: `[batch=4 trial=8]`."""
    sizes = zip(expectation.axes, _shape(expectation), strict=False)
    return "[" + " ".join(axis if axis == str(size) else f"{axis}={size}" for axis, size in sizes) + "]"


def _wrong_values(case: Case, mismatch: Mismatch) -> str:
    """Say of which thing values differ, how many and where, how near they are, and what else is right."""
    expectation, array = mismatch.expectation, expected_array(mismatch.expectation)
    allowed = f"{expectation.rtol:g} relative" if expectation.rtol else f"{expectation.atol:g} more or less"
    tolerance = f" (allowed: {allowed})" if expectation.rtol or expectation.atol else ""
    place = f", all at {mismatch.shared[0]} {mismatch.shared[1]}" if mismatch.shared else ""
    verb = "differs" if mismatch.differing == 1 else "differ"
    count = f"{mismatch.differing} of {mismatch.total} values {verb}{place}{tolerance}"
    if mismatch.total == 1:
        count = f"its value differs{tolerance}"
    own = mismatch.returned.array
    if mismatch.rung == "gradient" and own is not None and not own[~right_places(expectation, own)].any():
        return f"{expectation.what} is 0 where it should not be.\n{count}"
    is_truth = "dtype" in expectation.forgiven and array.dtype.kind == "i" and {*array.flat} <= {0, 1}
    dtype = "" if case.values == PYTHON or is_truth else mismatch.returned.dtype
    is_number = case.values != TORCH and not _shape(expectation)
    lines = [expectation.what if is_number else f"{expectation.what}   {dtype}{named_shape(expectation)}", count]
    if is_near_miss(mismatch):
        lines.append("almost right")
    if mismatch.right:
        more = [f"{len(mismatch.right) - MAX_RIGHT} more"] if len(mismatch.right) > MAX_RIGHT else []
        listed = ", ".join([*mismatch.right[:MAX_RIGHT], *more])
        lines.append(f"right: {listed if len(listed) <= MAX_LISTED else f'the {len(mismatch.right)} others'}")
    return "\n".join(lines)


def is_near_miss(mismatch: Mismatch) -> bool:
    """Tell whether all values are finite, and right or nearly so."""
    return mismatch.relative is not None and mismatch.relative <= NEAR_MISS


def _wrong_error(expectation: Expectation, observed: object, *, reveal: bool) -> str:
    wanted, types = expectation.value["type"], observed.get("types") if isinstance(observed, dict) else None
    types = types if isinstance(types, list) else []
    if not isinstance(observed, dict):
        fault = f"raise {wanted}, but raised nothing"
    elif wanted not in types:
        names = [name for name in types if isinstance(name, str)] if reveal else []
        fault = f"raise {wanted}, but raised {visible(names[0], 80) if names else 'something else'}"
    else:
        texts = " and ".join(map(repr, expectation.value.get("mentions", ())))
        fault = f"raise {wanted} and name {texts if reveal else 'what is wrong'}, but its text does not"
    return f"{expectation.what} should {fault}."


# Facts, in the stored case's words


def about_fact(expectation: Expectation, observed: object, *, reveal: bool) -> str:
    """Say what should be and what is; of a hidden case neither.

    Where nothing was seen of what the fact is about, words that tell how it was done would be untrue.
    """
    message, what = expectation.message, expectation.what
    if reveal:
        if _is_unseen(observed) and "{observed}" not in message:
            return f"Nothing was seen of this: {what}."
        is_result = is_compared(expectation)
        both = [json.loads(json.dumps(value, sort_keys=True)) for value in (expectation.value, observed)]  # alike
        wanted, seen = (literal(value) if is_result else plain(value) for value in both)
        told = message.replace("{expected}", wanted).replace("{observed}", visible(seen, MAX_SEEN)).replace("….", "…")
        return told + (_first_difference(*both) if is_result and len(wanted + seen) > LONG_RESULT else "")
    if expectation.diagnosis:
        return f"Look at this: {what}."
    if "{" not in message:
        return message
    claim = message.split("; ")[0]
    if expectation.kind == "witness" or "{observed}" in claim:
        return f"In a hidden case this is not as it should be: {what}."
    claim = ASIDE.sub("", claim).replace("{expected}", "…").rstrip(".")
    return f"In a hidden case this does not hold: {claim}{'' if claim.endswith('…') else '.'}"


def is_compared(expectation: Expectation) -> bool:
    """Tell whether it is what comes back, or what an argument then holds: there 'a' and 'a ' are not the same."""
    return expectation.name.partition(" ")[0] == "result" or " afterwards" in expectation.name


def stored_text(expectation: Expectation, value: object) -> str:
    """Write the value of a fact by itself, its keys as Python has them."""
    if value is None:
        return "nothing"
    return value if isinstance(value, str) and not is_compared(expectation) else literal(value)


def _is_unseen(observed: object) -> bool:
    return observed is None or observed == []


def _first_difference(wanted: Any, seen: Any, place: str = "") -> str:
    """Say at which place inside two results differ first; "" where they differ as a whole."""
    keys: Sequence[Any] = ()
    if isinstance(wanted, list) and isinstance(seen, list):
        keys = range(min(len(wanted), len(seen)))
    elif isinstance(wanted, dict) and isinstance(seen, dict):
        keys = [key for key in wanted if key in seen]
    for key in keys:
        if not alike(seen[key], wanted[key]):
            shown = key if isinstance(key, int) or PYTHON_KEY.match(key) else repr(key)
            return _first_difference(wanted[key], seen[key], f"{place}[{shown}]")
    return f"\nFirst at {place}: expected {literal(wanted)}, yours {visible(literal(seen), MAX_SEEN)}" if place else ""


def literal(value: object, depth: int = 100) -> str:
    """Write JSON as Python, with the keys that `calling.keyed` wrote as text."""
    match value:
        case list() | dict() if not depth:
            return "…"
        case list():
            return f"[{', '.join(literal(entry, depth - 1) for entry in value)}]"
        case dict():
            keys = {key: key if PYTHON_KEY.match(key) else repr(key) for key in value}
            return "{" + ", ".join(f"{keys[key]}: {literal(entry, depth - 1)}" for key, entry in value.items()) + "}"
    return repr(value)


def plain(value: object, depth: int = MAX_DEPTH) -> str:
    """Write JSON as a sentence shows it; what is nested deeper than `depth` is left out."""
    match value:
        case list() | dict() if not depth:
            return "…"
        case None | []:
            return "nothing"
        case list():
            entries: list[str] = []
            for entry, group in itertools.groupby(plain(entry, depth - 1) for entry in value):
                number = len(list(group))  # `3 times: a rollout, its rewards`
                entries += [f"{number} times: {entry}"] if number > 1 and len(entry) > LONG else [entry] * number
            return "[" + ", ".join(entries) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {plain(entry, depth - 1)}" for key, entry in value.items()) + "}"
        case float() if value % 1:
            return f"{value:.10g}"
    return str(value)


# Numbers side by side


def table(mismatch: Mismatch) -> list[str]:
    """Write a headline, one line for each of the first places that differ, and how many more there are."""
    axes = "[" + " ".join(mismatch.expectation.axes) + "]" if mismatch.expectation.axes else ""
    rows = [(axes, "yours", "expected")]
    for place in mismatch.first:
        index = "[" + " ".join(map(str, place.index)) + "]" if place.index else ""
        numbers = place.observed + 0.0, place.expected + 0.0  # which makes 0 of -0
        pairs = [(f"{numbers[0]:.{digits}g}", f"{numbers[1]:.{digits}g}") for digits in MORE_DIGITS]
        rows.append((index, *next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    more = mismatch.differing - len(mismatch.first)
    return lines + ([f"  … {more} more"] if more > 0 else [])


# The weights of a run, update by update

UPDATE = "update"  # the first axis of whatever a case has for each update
FOLLOWED = "weights before and after"  # sums of weights, the first of them before the first update
LOSSES = "losses of updates"  # what each update learned from


def about_updates(case: Case, observation: Observation) -> str:
    """Tell which update is the first wrong one; "" where there are no such weights, all are right, or fewer or more.

    What is told follows from stored weights alone, so it is true whatever the cause. Where to look is told where the
    case shows that nothing before the update was wrong.
    """
    pairs = {  # name → what is stored for each update, and what came back
        one.name: (one, one.array, returned.array)
        for one in case.expected
        if one.array is not None and one.axes[:1] == (UPDATE,)
        if (returned := observation.returned.get(one.name)) is not None and returned.array is not None
        if returned.array.shape == one.array.shape
    }
    start = case.inputs.get("weight")
    right = None
    for name, (one, due, made) in pairs.items():
        if not np.isfinite(made).all():
            continue
        if name in ("weights", "weight") and start is not None and due.shape[1:] == start.shape:
            due, made = np.concatenate([start[None], due]), np.concatenate([start[None], made])
        elif name != FOLLOWED or len(made) < 2:
            continue
        right = right_places(replace(one, array=due), made).reshape(len(due), -1).all(axis=1)
        break
    if right is None or right.all():
        return ""
    first = int(np.argmin(right))
    if not first:
        return "The weights differ before the first update."
    when = f"The weights are wrong from update {first} on."
    if LOSSES not in pairs:
        return when
    one, _, losses = pairs[LOSSES]
    wrong = np.flatnonzero(~right_places(one, losses)[:first])
    if wrong.size:
        return f"{when} The loss of update {wrong[0] + 1} is wrong: look at what it is made of."
    return f"{when} Its loss is right: look at what becomes of its gradient, and at the optimizer."

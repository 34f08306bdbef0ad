"""The laws: what holds of every graded function, whatever it computes.

A law is a small function that plans calls, with the sentence that students are told and the hint for who breaks it:

    (declared function, draws of the item, place 1 public or 2 hidden) → calls

Adding a law is adding a function here, a row to the table of fixtures/README.md, and a habit that it must catch to
tests/authoring/test_laws.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from autograder.authoring.declarations import Draft, Expectation, fact
from autograder.authoring.faults import Refusal
from autograder.authoring.laws.declaration import USUAL, Arguments, Error, Function
from autograder.sandbox.calls import Array

ALIKE = frozenset({"alike"})  # judged where a call must answer as another one does, whatever is right
Place = Literal[1, 2]  # of the sizes: public, hidden
STATE_DRAWS = 8  # among which the other call is looked for whose answers all differ from the first

RECORDED = "Under torch.no_grad() the caller wants no graph, but the result carries one."
MADE_ON_CPU = "On a GPU {observed} would be refused: it meets one of the arguments with a tensor of the CPU."


@dataclass(frozen=True)
class Call:
    """A planned case: the end of its name, its title, and how its arguments are drawn.

    draw      the name of the draw whose tolerances count
    arguments (rng, sizes) → arguments
    sizes     of the axes; those that are the function's usual ones may be made larger, so that no two cases agree
    options   beside those of the function: leaves, constants, raises, counted, tolerances
    params    more parameters of the probe: aliases, graphs, recording
    finish    make another draft of the one that was made, such as several calls of one: (draft, draft anew) → draft
    example   whether the numbers are the same in every set
    judged    what is looked at in this call, where that is not all that its item looks at
    """

    label: str
    title: str
    draw: str
    arguments: Callable[[np.random.Generator, Mapping[str, int]], Arguments]
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Draft, Callable[[int], Draft]], Draft] | None = None
    example: bool = False
    judged: frozenset[str] = frozenset()


Plan = Callable[[Function, Sequence[str], Place], Iterator[Call]]


@dataclass(frozen=True)
class Law:
    """A law that holds for every function whose declaration does not switch it off.

    sentence  what students are told, once, at the top of their module
    hint      what a student is asked whose answer breaks it; "" where the item's own hint says more
    calls     plan the calls that it adds to an item
    aspects   what it looks at in all calls of an item: "values", "dtype", "kind", "unmodified", "gradient",
              "constants"; "shape": whether [1] will do in place of [];
              "alike": whether the call answers in each way of its parameter "also" as in the first
    """

    name: str
    sentence: str
    hint: str
    calls: Plan
    aspects: frozenset[str]


LAWS: dict[str, Law] = {}


def law(sentence: str, hint: str = "", *, aspects: Sequence[str] = ()) -> Callable[[Plan], Plan]:
    """Enter a function into LAWS, under its name."""

    def entered(calls: Plan) -> Plan:
        name = calls.__name__
        LAWS[name] = Law(name, sentence, hint, calls, frozenset(aspects))
        return calls

    return entered


def usual_call(
    function: Function,
    draw: str,
    label: str,
    title: str,
    sizes: Mapping[str, int],
    *,
    dtype: str = "",
    change: Callable[[dict[str, Any]], Arguments] = lambda arguments: arguments,
    params: Mapping[str, Any] | None = None,
    judged: frozenset[str] = frozenset(),
    **options: Any,
) -> Call:
    """Plan a call with arguments of that draw and those sizes, after `change`."""

    def arguments(rng: np.random.Generator, sizes: Mapping[str, int]) -> Arguments:
        return change(function.drawn(draw, rng, sizes, dtype))

    return Call(label, title, draw, arguments, sizes, options, params or {}, judged=judged)


@law("What comes back is right to about six digits.", aspects=["values", "shape"])
def values(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call once with each draw; hidden calls are larger."""
    for draw in draws:
        title = "" if draw == USUAL else draw.replace("_", " ")
        yield usual_call(function, draw, draw, title, function.sized(place))


@law(
    "A result can be differentiated with respect to what depends on the weights.",
    "Is what you return still connected to the tensor that it should be differentiated by, and is no step cut?",
    aspects=["gradient"],
)
def gradient(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make usual calls, whose gradients are looked at, and one for a caller who records none."""
    yield from values(function, draws, place)
    if place == 2:
        params = {"recording": False, "leaves": [*function.leaves]}
        sizes = function.sized(place)
        call = usual_call(function, draws[0], "no-grad", "under torch.no_grad()", sizes, params=params, leaves=[])
        yield call if isinstance(function.returns, Mapping) else replace(call, finish=_without_graph)


def _without_graph(draft: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Judge as well that the result carries no graph."""
    unrecorded = fact("graph", "a graph", False, RECORDED)
    return replace(draft, answer=lambda inputs, params: [*draft.answer(inputs, params), unrecorded])


@law(
    "What the docstring calls a constant receives no gradient.",
    "Which arguments are constants, and which step keeps a gradient from reaching them?",
    aspects=["constants"],
)
def constants(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Let each constant require a gradient, be the very tensor that is differentiated, and carry its graph.

    In the latter two the gradient must be the same as where the constant is a tensor of its own with the same numbers.
    """
    yield from values(function, draws, place)
    sizes = function.sized(place)
    alike: dict[str, Any] = {"judged": ALIKE, "leaves": function.leaves, "constants": []}
    for constant in function.constants if place == 1 else ():
        label = constant.replace("_", "-")
        for leaf in function.leaves:

            def shared(arguments: dict[str, Any], leaf: str = leaf, constant: str = constant) -> Arguments:
                return arguments | ({constant: arguments[leaf]} if constant in arguments else {})

            if function.axes(leaf) == function.axes(constant):
                title = f"{constant} is computed from {leaf}, and equal"
                params = {"also": {f"with {constant}": {"aliases": {constant: {"of": leaf, "plus": 0.0}}}}}
                yield usual_call(
                    function, draws[0], f"{label}-shared", title, sizes, change=shared, params=params, **alike
                )
            title = f"{constant} carries the graph of {leaf}"
            graph = {"also": {f"with {constant}": {"graphs": {constant: leaf}}}}
            yield usual_call(function, draws[0], f"{label}-graph", title, sizes, params=graph, **alike)


@law(
    "What comes back has the dtype of the numbers that go in.",
    "Which dtype goes in, which comes out, and which does each step in between have?",
    aspects=["dtype"],
)
def dtype(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call each draw in each dtype, those of one draw in turn: what is public in one is hidden in the other."""
    usual, sizes = function.dtypes[0], function.sized(place)
    for number, draw in enumerate(draw for draw in draws if draw not in function.wide):
        turn = function.dtypes[(number + place) % len(function.dtypes)]
        for name in function.dtypes if len(draws) == 1 else [turn]:
            if len(function.dtypes) > 1 and name == usual:  # the call that the law of values makes: one case for both
                yield from values(function, [draw], place)
            else:
                label = name if draw == USUAL else f"{draw}-{name}"
                call = usual_call(function, draw, label, f"{name} stays {name}", sizes, dtype=name)
                yield call if name == usual else replace(call, draw="")  # tolerances are of the first dtype


@law(
    "Compute in the dtype that you are given, or in a longer one.",
    "The dtype may be right: where do your numbers become shorter on their way?",
)
def precision(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call in float64, and look at more digits than a shorter dtype has."""
    if place == 2:
        allowed: dict[str, Any] = {"dtype": "float64", "judged": frozenset({"values"}), "rtol": 1e-12, "atol": 1e-12}
        yield usual_call(function, draws[0], "precise", "all digits of float64", function.sized(place), **allowed)


@law("What comes back is of the kind that the docstring says.", aspects=["kind"])
def kind(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make usual calls."""
    return values(function, draws, place)


@law(
    "No function changes its arguments.", "What do the caller's arguments hold after the call?", aspects=["unmodified"]
)
def unmodified(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make usual calls, and one that raises."""
    yield from values(function, draws, place)
    for error in [*function.errors.values()][: 2 - place]:
        title, sizes, judged = "a call that raises", function.sized(place), frozenset({"unmodified"})
        yield usual_call(function, draws[0], "raising", title, sizes, raises={"error": error}, judged=judged)


@law(
    "A function computes on the device of its arguments.",
    "Where does a tensor lie that you make without saying where, and where do the arguments of a GPU lie?",
)
def device(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call with tensors that seem to lie on a GPU, by the assignment's own probe `elsewhere`: half the draws public."""
    for draw in draws[place - 1 :: 2] or draws:
        label, title = "device" if draw == USUAL else f"{draw}-device", "arguments on a GPU"
        yield replace(usual_call(function, draw, label, title, function.sized(place)), finish=_on_a_gpu)


def _on_a_gpu(draft: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Judge of the call nothing but where it computes."""
    name = draft.params["function"]
    message = f"{name} should compute where its arguments are, on a GPU as on the CPU; yours computes {{observed}}."

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        return [
            fact("place", "the device of the arguments", "where they are", message),
            fact("fault", "tensors that are made on the CPU", None, MADE_ON_CPU, diagnosis=True),
        ]

    return replace(draft, probe="elsewhere", answer=answer)


@law(
    "Every axis may have any size, 1 too.",
    "Which axis has another size here than in the other cases, and which step counts on a size?",
    aspects=["values", "shape"],
)
def sizes(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Give each axis its least size in turn, then all of them one size, as far as they go that low: one is public."""
    lowest = function.lowest(draws[0])
    several = {
        f"one-{axis}" if least == 1 else f"least-{axis}": function.sized(place, **{axis: least})
        for axis, least in lowest.items()
    }
    if len(function.sizes) > 1:
        several["equal-sizes"] = dict.fromkeys(function.sizes, max(2 + place, *lowest.values()))
    for number, (label, of_axes) in enumerate(several.items()):
        if (number == 1) == (place == 1):
            yield usual_call(function, draws[0], label, "", of_axes)


@law(
    "How a tensor lies in memory does not matter.",
    "Which step needs a contiguous array, and which one does the same for any array?",
)
def layout(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Exchange the last two axes in memory, and let every array be a slice: the answers are that of usual arrays."""
    arrays = [name for name in function.arguments if function.is_array(name)]
    if arrays and place == 2:
        tables = [name for name in arrays if len(function.axes(name)) > 1]
        also = {"transposed": {"transposed": tables}} if tables else {}
        params = {"also": {**also, "sliced": {"sliced": arrays}}}
        title = "arrays that lie otherwise in memory"
        yield usual_call(function, draws[0], "layout", title, function.sized(place), params=params, judged=ALIKE)


@law(
    "A call depends on its arguments alone, and what it returned stays as it was.",
    "Try each of these calls by itself, in a fresh Python. Where it is right there, what do you keep from one call to "
    "the next, and who writes into it?",
)
def state(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call with one draw's arguments, then with one of them at a time from another draw, then with all of them."""
    if place == 2:
        title = "one call after another, each of one size"
        call = usual_call(function, draws[0], "again", title, function.sized(place))
        yield replace(call, finish=functools.partial(_one_after_another, function))


def _one_after_another(function: Function, first: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Make one case of the calls whose answers differ from the first's; raise Refusal where no draw has any."""
    best = first
    for number in range(1, STATE_DRAWS):
        draft = _with_further_calls(function, first, anew(number))
        differing = [entry for entry, differs in zip(draft.params["calls"], _differ(draft), strict=True) if differs]
        if len(differing) > len(best.params.get("calls", ())):
            best = replace(draft, params={**draft.params, "calls": differing})
        if len(differing) == len(draft.params["calls"]):
            break
    if best is first:
        raise Refusal(f"{first.case}: no draw gives a further call another answer than the first.", first.case)
    return best


def _with_further_calls(function: Function, draft: Draft, other: Draft) -> Draft:
    """Follow a call by others: each with one argument of the other draft that differs, the last with all of them."""
    inputs = {**draft.inputs, **{f"other {name}": array for name, array in other.inputs.items()}}
    given, elsewhere = draft.params.get("given", {}), other.params.get("given", {})
    differ = [name for name, array in draft.inputs.items() if not np.array_equal(array, other.inputs[name])]
    instead: dict[str, Any] = {name: {"input": f"other {name}"} for name in differ}
    instead |= {name: elsewhere[name] for name, number in given.items() if number != elsewhere.get(name, number)}
    entries = [*({name: instead[name]} for name in draft.params["arguments"] if name in instead), instead]
    usual, others = {**given, **draft.inputs}, {**elsewhere, **other.inputs}
    entries = [entry for entry in entries if function.valid(usual | {name: others[name] for name in entry})]

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        expected: list[Expectation] = []
        for number, entry in enumerate([{}, *params["calls"]], start=1):
            named = {name: inputs[name] for name in draft.inputs}
            named |= {name: inputs[one["input"]] for name, one in entry.items() if isinstance(one, dict)}
            numbers = {**params.get("given", {}), **{name: entry[name] for name in entry if name not in named}}
            expected += [
                replace(one, name=f"{one.name} {number}", what=f"{one.what} of call {number}", attached=None)
                for one in draft.answer(named, {**params, "given": numbers})
                if one.kind == "value" or one.name == "result"
            ]
        message = f"{params['function']} uses or seeds the caller's random numbers, those of {{observed}}."
        return [*expected, fact("random", "the caller's random numbers", [], message)]

    params = {**draft.params, "calls": entries}
    return replace(
        draft,
        probe=function.driver or "again",
        inputs=inputs,
        answer=answer,
        params=params,
        free=(*draft.free, *inputs),
    )


def _differ(draft: Draft) -> list[bool]:
    """Say of each further call whether its answer is another one than the first's."""
    expected = [one for one in draft.answer(draft.inputs, draft.params) if one.name != "random"]
    answers = [one.value if one.array is None else one.array.tobytes() for one in expected]
    parts = len(answers) // (1 + len(draft.params["calls"]))
    return [answers[start : start + parts] != answers[:parts] for start in range(parts, len(answers), parts)]


@law(
    "Names, order and defaults of the arguments are those of the handout.",
    "Compare the line of your `def` with the handout's: names, their order, defaults.",
)
def signature(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Pass every argument in order, then by name; where it is hidden, leave out each that has a default.

    Each answer must be that of the same call with the arguments bound by name, whatever is right: the calls of
    other laws bind them so, and a signature in another order costs here alone.
    """
    if function.driver:  # it has the arguments, not what students write
        return
    arguments, sizes = [*function.arguments], function.sized(place)
    also: dict[str, Any] = {"in order": {"bound": False}, "by name": {"bound": False, "by_name": arguments}}
    title = "every argument in the handout's order, and by its name"
    if place == 1:
        yield usual_call(function, draws[0], "in-order", title, sizes, params={"also": also}, judged=ALIKE)
    for argument, default in function.defaults.items() if place == 2 else ():
        named = list(dict.fromkeys([*arguments[arguments.index(argument) :], *function.options.get("by_name", ())]))
        also = {f"without {argument}": {"bound": False, "without": [argument], "by_name": named}}
        label, title = f"without-{argument.replace('_', '-')}", f"{argument} is left out"
        usual, params = functools.partial(_with, {argument: default}), {"also": also}
        yield usual_call(function, draws[0], label, title, sizes, change=usual, params=params, judged=ALIKE)


def _with(changed: Arguments, arguments: Arguments) -> Arguments:
    return {**arguments, **changed}


@law(
    "0, 0.0 and what is empty mean what they say.",
    "Where do you ask whether an argument is true instead of whether it is None?",
)
def falsy(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Give each argument that has one its falsy value."""
    for argument, value in function.falsy.items():
        label, title = f"falsy-{argument.replace('_', '-')}", f"{argument} is {value!r}"
        change = functools.partial(_with, {argument: value})
        yield usual_call(function, draws[0], label, title, function.sized(place), change=change)


@law(
    "What a docstring forbids raises ValueError, and the message names what is wrong.",
    "What should a caller see after a typing error, or where something is missing?",
)
def errors(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make a usual call of each draw in turn, and beside it calls that must raise: half of them public."""
    refused = {label: [error] for label, error in function.errors.items()}
    for argument, words in function.words.items():
        for kind, misspelt in _misspelt(words).items():
            wrong = [word for word in dict.fromkeys(misspelt) if word not in words]
            refused[f"{argument}-{kind}"] = [
                Error({argument: word}, [word.strip()] if word.strip() else []) for word in wrong
            ]
    for number, (label, several) in enumerate(refused.items()):
        if (number % 2 == 0) == (place == 1) or len(refused) == 1:
            draw = draws[number % len(draws)]
            raises = {f"error {n}": error for n, error in enumerate(several, start=1)}
            shown = [
                f"{name} {value!r}" for one in several for name, value in one.instead.items() if not callable(value)
            ]
            title, judged = ", ".join(shown[:3]) or label, frozenset({"errors"})
            yield usual_call(function, draw, label, title, function.sized(place), raises=raises, judged=judged)


def _misspelt(words: Sequence[str]) -> dict[str, list[str]]:
    """List words that an argument may not be: each that it may be cut, longer, in capitals, with spaces; others."""
    return {
        "cut": [word[:-1] for word in words],
        "longer": [f"{word}s" for word in words],
        "capitals": [other for word in words for other in (word.title(), word.upper())],
        "spaces": [other for word in words for other in (f"{word} ", f" {word}")],
        "other": ["", "none", "mean", "median", *(part for word in words for part in word.split("_"))],
    }


@law(
    "A function that you are given is called as often as the docstring says, and its exceptions reach the caller.",
    "How often do you call it for each value, and what happens to an exception that it raises?",
)
def callables(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Count the calls of each callable, then let each raise."""
    names = [name for name, shape in function.arguments.items() if shape == "function"]
    sizes, judged = function.sized(place), frozenset({"calls"})
    if names:
        yield usual_call(function, draws[0], "counted", "calls are counted", sizes, counted=names, judged=judged)
    for name in names:

        def raising(arguments: Arguments, name: str = name) -> dict[str, str]:
            return {**arguments[name].stated, "is": "1 / 0"}

        raises = {f"what {name} raises": Error({name: raising}, [], "ZeroDivisionError")}
        title = f"{name} raises an exception"
        yield usual_call(function, draws[0], f"raising-{name}", title, sizes, raises=raises, judged=judged)

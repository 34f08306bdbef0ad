"""The laws: what holds of every graded function, whatever it computes.

A law is a small function that plans calls, with the sentence that students are told and the hint for who breaks it:

    (declared function, draws of the item, place 1 public or 2 hidden) → calls

Adding a law is adding a function here, a row to the table of fixtures/README.md, and a habit that it must catch to
tests/authoring/test_laws.py.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from autograder.authoring.calls import AFTERWARDS
from autograder.authoring.declarations import Draft, Expectation, fact
from autograder.authoring.faults import Refusal
from autograder.authoring.laws.declaration import USUAL, Arguments, Error, Function
from autograder.sandbox.calls import Array

ALIKE = frozenset({"alike"})  # judged where a call must answer as another one does, whatever is right
ELSEWHERE = "elsewhere"  # the probe of an assignment that passes tensors which seem to lie on a GPU
STATE_DRAWS = 8  # among which the other call is looked for whose answers all differ from the first

Place = Literal[1, 2]  # of the sizes: public, hidden
Anew = Callable[[int], Draft]  # the draft of a planned call once more, drawn anew


@dataclass(frozen=True)
class Call:
    """A planned case: the end of its name, its title, and how its arguments are drawn.

    sizes     of axes, where they are not the function's own; those may be made larger, so that no two cases agree
    dtype     of floating arguments, the function's first if none; tolerances are of that first one
    instead   argument → what stands instead: a value, or a function of the usual arguments
    fixed     all arguments, of an example: the same in every set
    options   beside those of the function: leaves, constants, raises, counted, tolerances
    params    more parameters of the probe: also, recording
    judged    what is looked at in this call, where that is not all that its item looks at
    probe     of probes.py, where it is not the function's
    finish    make another draft of the one that was made, such as several calls of one: (draft, draft anew) → draft
    """

    label: str
    title: str
    draw: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    dtype: str = ""
    instead: Mapping[str, Any] = field(default_factory=dict)
    fixed: Arguments | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    probe: str = ""
    finish: Callable[[Draft, Anew], Draft] | None = None

    def arguments(self, function: Function, rng: np.random.Generator, sizes: Mapping[str, int]) -> Arguments:
        """Draw the arguments of the call."""
        if self.fixed is not None:
            return {name: self.fixed[name] for name in function.arguments if name in self.fixed}
        usual = function.drawn(self.draw, rng, sizes, self.dtype)
        return usual | {name: one(usual) if callable(one) else one for name, one in self.instead.items()}


Plan = Callable[[Function, Sequence[str], Place], Iterable[Call]]


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
        name = getattr(calls, "__name__", "")
        LAWS[name] = Law(name, sentence, hint, calls, frozenset(aspects))
        return calls

    return entered


@law("What comes back is right to about six digits.", aspects=["values", "shape"])
def values(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Call once with each draw; hidden calls are larger."""
    return [Call(draw, "" if draw == USUAL else draw.replace("_", " "), draw) for draw in draws]


@law(
    "A result can be differentiated with respect to what depends on the weights.",
    "Is what you return still connected to the tensor that it should be differentiated by, and is no step cut?",
    aspects=["gradient"],
)
def gradient(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Make usual calls, whose gradients are looked at, and one for a caller who records none."""
    yield from values(function, draws, place)
    if place == 2:
        params = {"recording": False, "leaves": [*function.leaves]}
        yield Call("no-grad", "under torch.no_grad()", draws[0], options={"leaves": []}, params=params)


@law(
    "What the docstring calls a constant receives no gradient.",
    "Which arguments are constants, and which step keeps a gradient from reaching them?",
    aspects=["constants"],
)
def constants(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Let each constant require a gradient, be the very tensor that is differentiated, and carry its graph.

    In the latter two the gradient must be the same as where the constant is a tensor of its own with the same numbers.
    """
    yield from values(function, draws, place)
    pairs = itertools.product(function.constants, function.leaves) if place == 1 else ()
    for constant, leaf in pairs:
        label, way = constant.replace("_", "-"), f"with {constant}"
        plain = Call("", "", draws[0], options={"leaves": function.leaves, "constants": []}, judged=ALIKE)
        if function.axes(leaf) == function.axes(constant):
            title = f"{constant} is computed from {leaf}, and equal"
            also = {"also": {way: {"aliases": {constant: {"of": leaf, "plus": 0.0}}}}}
            equal = {constant: operator.itemgetter(leaf)}
            yield replace(plain, label=f"{label}-shared", title=title, instead=equal, params=also)
        title, graph = f"{constant} carries the graph of {leaf}", {"also": {way: {"graphs": {constant: leaf}}}}
        yield replace(plain, label=f"{label}-graph", title=title, params=graph)


@law(
    "What comes back has the dtype of the numbers that go in.",
    "Which dtype goes in, which comes out, and which does each step in between have?",
    aspects=["dtype"],
)
def dtype(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Call each draw in each dtype, those of one draw in turn: what is public in one is hidden in the other."""
    for number, draw in enumerate(draw for draw in draws if draw not in function.wide):
        turn = function.dtypes[(number + place) % len(function.dtypes)]
        for name in function.dtypes if len(draws) == 1 else [turn]:
            if len(function.dtypes) > 1 and name == function.dtypes[0]:  # as the law of values: one case for both
                yield from values(function, [draw], place)
            else:
                label = name if draw == USUAL else f"{draw}-{name}"
                yield Call(label, f"{name} stays {name}", draw, dtype=name)


@law(
    "Compute in the dtype that you are given, or in a longer one.",
    "The dtype may be right: where do your numbers become shorter on their way?",
)
def precision(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Call in float64, and look at more digits than a shorter dtype has."""
    if place == 2:
        allowed: dict[str, Any] = {"dtype": "float64", "rtol": 1e-12, "atol": 1e-12}
        yield Call("precise", "all digits of float64", draws[0], options=allowed, judged=frozenset({"values"}))


@law("What comes back is of the kind that the docstring says.", aspects=["kind"])
def kind(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Make usual calls."""
    return values(function, draws, place)


@law(
    "No function changes its arguments.", "What do the caller's arguments hold after the call?", aspects=["unmodified"]
)
def unmodified(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Make usual calls, and one that raises."""
    yield from values(function, draws, place)
    for error in [*function.errors.values()][: 2 - place]:
        raises = {"raises": {"error": error}}
        yield Call("raising", "a call that raises", draws[0], options=raises, judged=frozenset({"unmodified"}))


@law(
    "A function computes on the device of its arguments.",
    "Where does a tensor lie that you make without saying where, and where do the arguments of a GPU lie?",
)
def device(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Call with tensors that seem to lie on a GPU, by the assignment's own probe `elsewhere`: half the draws public."""
    for draw in draws[place - 1 :: 2] or draws:
        yield Call("device" if draw == USUAL else f"{draw}-device", "arguments on a GPU", draw, probe=ELSEWHERE)


@law(
    "Every axis may have any size, 1 too.",
    "Which axis has another size here than in the other cases, and which step counts on a size?",
    aspects=["values", "shape"],
)
def sizes(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Give each axis its least size in turn, then all of them one size, as far as they go that low: one is public."""
    lowest = function.lowest(draws[0])
    several = {f"one-{axis}" if least == 1 else f"least-{axis}": {axis: least} for axis, least in lowest.items()}
    if len(function.sizes) > 1:
        several["equal-sizes"] = dict.fromkeys(function.sizes, max(2 + place, *lowest.values()))
    for number, (label, of_axes) in enumerate(several.items()):
        if (number == 1) == (place == 1):
            yield Call(label, "", draws[0], of_axes)


@law(
    "How a tensor lies in memory does not matter.",
    "Which step needs a contiguous array, and which one does the same for any array?",
)
def layout(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Exchange the last two axes in memory, and let every array be a slice: the answers are that of usual arrays."""
    arrays = [name for name, shape in function.arguments.items() if "[" in shape]
    if arrays and place == 2:
        tables = [name for name in arrays if len(function.axes(name)) > 1]
        also = {**({"transposed": {"transposed": tables}} if tables else {}), "sliced": {"sliced": arrays}}
        yield Call("layout", "arrays that lie otherwise in memory", draws[0], params={"also": also}, judged=ALIKE)


@law(
    "A call depends on its arguments alone, and what it returned stays as it was.",
    "Try each of these calls by itself, in a fresh Python. Where it is right there, what do you keep from one call to "
    "the next, and who writes into it?",
)
def state(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Call with one draw's arguments, then with one of them at a time from another draw, then with all of them."""
    if place == 2:
        finish = functools.partial(_one_after_another, function)
        yield Call("again", "one call after another, each of one size", draws[0], finish=finish)


def _one_after_another(function: Function, first: Draft, anew: Anew) -> Draft:
    """Make one case of the calls whose answers differ from the first's; raise Refusal where no draw has any."""
    of_first = first.params.get("given", {})
    parts = {"result", *first.params["returns"], *(f"{name} {AFTERWARDS}" for name in first.params.get("changes", ()))}

    def right(entry: Mapping[str, Any], inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        """Say what the call with these arguments instead returns."""
        named = {name: inputs[entry[name]["input"] if name in entry else name] for name in first.inputs}
        given = params.get("given", {}) | {name: one for name, one in entry.items() if name not in first.inputs}
        expected = first.answer(named, {**params, "given": given})
        return [one for one in expected if one.name in parts]

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        expected = [
            replace(one, name=f"{one.name} {number}", what=f"{one.what} of call {number}", attached=None)
            for number, entry in enumerate([{}, *params["calls"]], start=1)
            for one in right(entry, inputs, params)
        ]
        message = f"{params['function']} uses or seeds the caller's random numbers, those of {{observed}}."
        return [*expected, fact("random", "the caller's random numbers", [], message)]

    def written(entry: Mapping[str, Any], inputs: Mapping[str, Array]) -> list[Any]:
        expected = right(entry, inputs, first.params)
        return [one.value if one.array is None else one.array.tobytes() for one in expected]

    calls, inputs = list[dict[str, Any]](), {**first.inputs}
    for number in range(1, STATE_DRAWS):
        other = anew(number)
        both = {**first.inputs, **{f"other {name}": array for name, array in other.inputs.items()}}
        changed = {name: array for name, array in other.inputs.items() if not np.array_equal(array, both[name])}
        of_other = other.params.get("given", {})
        changed |= {name: one for name, one in of_first.items() if one != of_other.get(name, one)}
        instead = {name: {"input": f"other {name}"} if name in other.inputs else of_other[name] for name in changed}
        entries = [*({name: instead[name]} for name in first.params["arguments"] if name in instead), instead]
        usual, others = {**of_first, **first.inputs}, {**of_other, **other.inputs}
        entries = [entry for entry in entries if function.valid(usual | {name: others[name] for name in entry})]
        differing = [entry for entry in entries if written(entry, both) != written({}, both)]
        if len(differing) > len(calls):
            calls, inputs = differing, both
        if len(differing) == len(entries):
            break
    if not calls:
        raise Refusal(f"{first.case}: no draw gives a further call another answer than the first.", first.case)
    params, probe = {**first.params, "calls": calls}, function.driver or "again"
    return replace(first, probe=probe, inputs=inputs, answer=answer, params=params, free=(*first.free, *inputs))


@law(
    "Names, order and defaults of the arguments are those of the handout.",
    "Compare the line of your `def` with the handout's: names, their order, defaults.",
)
def signature(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Pass every argument in order, then by name; where it is hidden, leave out each that has a default.

    Each answer must be that of the same call with the arguments bound by name, whatever is right: the calls of
    other laws bind them so, and a signature in another order costs here alone.
    """
    if function.driver:  # it has the arguments, not what students write
        return
    arguments = [*function.arguments]
    if place == 1:
        also: dict[str, Any] = {"in order": {"bound": False}, "by name": {"bound": False, "by_name": arguments}}
        title = "every argument in the handout's order, and by its name"
        yield Call("in-order", title, draws[0], params={"also": also}, judged=ALIKE)
    for argument, default in function.defaults.items() if place == 2 else ():
        named = list(dict.fromkeys([*arguments[arguments.index(argument) :], *function.options.get("by_name", ())]))
        also = {f"without {argument}": {"bound": False, "without": [argument], "by_name": named}}
        label, title = f"without-{argument.replace('_', '-')}", f"{argument} is left out"
        yield Call(label, title, draws[0], instead={argument: default}, params={"also": also}, judged=ALIKE)


@law(
    "0, 0.0 and what is empty mean what they say.",
    "Where do you ask whether an argument is true instead of whether it is None?",
)
def falsy(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Give each argument that has one its falsy value."""
    for name, value in function.falsy.items():
        yield Call(f"falsy-{name.replace('_', '-')}", f"{name} is {value!r}", draws[0], instead={name: value})


@law(
    "What a docstring forbids raises ValueError, and the message names what is wrong.",
    "What should a caller see after a typing error, or where something is missing?",
)
def errors(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Make a usual call of each draw in turn, and beside it calls that must raise: half of them public."""
    refused = {label: [error] for label, error in function.errors.items()}
    for argument, words in function.words.items():
        misspelt = {
            "cut": [word[:-1] for word in words],
            "longer": [f"{word}s" for word in words],
            "capitals": [other for word in words for other in (word.title(), word.upper())],
            "spaces": [other for word in words for other in (f"{word} ", f" {word}")],
            "other": ["", "none", "mean", "median", *(part for word in words for part in word.split("_"))],
        }
        for kind, several in misspelt.items():
            wrong = [word for word in dict.fromkeys(several) if word not in words]
            named = [(word, [word.strip()] if word.strip() else []) for word in wrong]
            refused[f"{argument}-{kind}"] = [Error({argument: word}, mentions) for word, mentions in named]
    for number, (label, calls) in enumerate(refused.items()):
        if (number % 2 == 0) == (place == 1) or len(refused) == 1:
            stated = [entry for error in calls for entry in error.instead.items()]
            shown = [f"{name} {value!r}" for name, value in stated if not callable(value)]
            raises = {"raises": {f"error {n}": error for n, error in enumerate(calls, start=1)}}
            draw, title = draws[number % len(draws)], ", ".join(shown[:3]) or label
            yield Call(label, title, draw, options=raises, judged=frozenset({"errors"}))


@law(
    "A function that you are given is called as often as the docstring says.",
    "How often do you call it for each value?",
)
def calls(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Count the calls of each callable whose number of calls is declared to matter."""
    if function.counted:
        counted = {"counted": function.counted}
        yield Call("counted", "calls are counted", draws[0], options=counted, judged=frozenset({"calls"}))


@law(
    "Exceptions of a function that you are given reach the caller.",
    "What happens to an exception that it raises?",
)
def callables(function: Function, draws: Sequence[str], place: Place) -> Iterable[Call]:
    """Let each callable raise."""

    def raising(name: str, arguments: Arguments) -> dict[str, str]:
        return {**arguments[name].stated, "is": "1 / 0"}

    for name in [name for name, shape in function.arguments.items() if shape == "function"]:
        error = Error({name: functools.partial(raising, name)}, [], "ZeroDivisionError")
        raises, title = {"raises": {f"what {name} raises": error}}, f"{name} raises an exception"
        yield Call(f"raising-{name}", title, draws[0], options=raises, judged=frozenset({"errors"}))

"""A call depends on its arguments alone, and what it returned stays as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.authoring.declarations import Draft, Expectation, Refusal, fact
from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call
from autograder.sandbox.calls import Array

DRAWS = 8  # among which the other call is looked for whose answers all differ from the first


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call with one draw's arguments, then with one of them at a time from another draw, then with all of them."""
    if place == 2:
        title = "one call after another, each of one size"
        call = usual_call(function, draws[0], "again", title, function.sized(place))
        yield replace(call, finish=functools.partial(together, function))


def together(function: Function, first: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Make one case of the calls whose answers differ from the first's; raises Refusal where no draw has any."""
    best = first
    for number in range(1, DRAWS):
        found = _several(function, first, anew(number))
        telling = [entry for entry, tells in zip(found.params["calls"], _tells(found), strict=True) if tells]
        if len(telling) > len(best.params.get("calls", ())):
            best = replace(found, params={**found.params, "calls": telling})
        if len(telling) == len(found.params["calls"]):
            break
    if best is first:
        raise Refusal(f"{first.case}: no draw gives a further call another answer than the first.", first.case)
    return best


def _several(function: Function, draft: Draft, other: Draft) -> Draft:
    inputs = {**draft.inputs, **{f"other {name}": array for name, array in other.inputs.items()}}
    given, elsewhere = draft.params.get("given", {}), other.params.get("given", {})
    differ = [name for name, array in draft.inputs.items() if not np.array_equal(array, other.inputs[name])]
    instead: dict[str, Any] = {name: {"input": f"other {name}"} for name in differ}
    instead |= {name: elsewhere[name] for name, number in given.items() if number != elsewhere.get(name, number)}
    entries = [*({name: instead[name]} for name in draft.params["arguments"] if name in instead), instead]
    usual, others = {**given, **draft.inputs}, {**elsewhere, **other.inputs}
    entries = [entry for entry in entries if function.valid(usual | {name: others[name] for name in entry})]

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        found: list[Expectation] = []
        for number, entry in enumerate([{}, *params["calls"]], start=1):
            named = {name: inputs[name] for name in draft.inputs}
            named |= {name: inputs[one["input"]] for name, one in entry.items() if isinstance(one, dict)}
            numbers = {**params.get("given", {}), **{name: entry[name] for name in entry if name not in named}}
            found += [
                replace(one, name=f"{one.name} {number}", what=f"{one.what} of call {number}", attached=None)
                for one in draft.answer(named, {**params, "given": numbers})
                if one.kind == "value" or one.name == "result"
            ]
        message = f"{params['function']} uses or seeds the caller's random numbers, those of {{observed}}."
        return [*found, fact("random", "the caller's random numbers", [], message)]

    params = {**draft.params, "calls": entries}
    return replace(draft, probe="again", inputs=inputs, answer=answer, params=params, free=(*draft.free, *inputs))


def _tells(draft: Draft) -> list[bool]:
    """Whether each further call has another answer than the first."""
    answers = [one for one in draft.answer(draft.inputs, draft.params) if one.name != "random"]
    found = [one.value if one.array is None else one.array.tobytes() for one in answers]
    parts = len(found) // (1 + len(draft.params["calls"]))
    rounds = [found[start : start + parts] for start in range(0, len(found), parts)]
    return [one != rounds[0] for one in rounds[1:]]


STATE = Law(
    "state",
    "A call depends on its arguments alone, and what it returned stays as it was.",
    "Try each of these calls by itself, in a fresh Python. Where it is right there, what do you keep from one call to "
    "the next, and who writes into it?",
    calls,
)

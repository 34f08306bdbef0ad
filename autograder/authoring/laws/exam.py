"""Derive from declarations and laws the cases of an assignment's items, and the trials of a counterexample."""

from __future__ import annotations

import ast
import functools
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.calls import AFTERWARDS, as_python
from autograder.authoring.declarations import Draft, generator_for
from autograder.authoring.faults import Misnamed, likely
from autograder.authoring.laws.cases import Planned, draft_of, with_answers
from autograder.authoring.laws.declaration import USUAL, Function, Written
from autograder.authoring.laws.laws import LAWS, Call, Law, Place
from autograder.grading.assignment import Assignment, Item
from autograder.grading.counterexamples import Trial, driver_in
from autograder.sandbox.worker.calling import unkeyed
from autograder.vocabulary.report import Visibility

PLACES: Mapping[Visibility, Place] = {"public": 1, "hidden": 2}
CHASED = {"values", "gradient", "constants", "errors", "falsy"}  # laws of items that get counterexamples
CONSTANT_DRAWS = 8  # of which one is another where a draw draws anything
STEPS = 20  # trials over which sizes grow from the least to public ones; those after have public ones


@dataclass(frozen=True)
class Exam:
    """What the declarations of an assignment give its items."""

    oracle: ModuleType
    functions: Mapping[str, Function]
    probes: str

    @classmethod
    def of(cls, oracle: ModuleType, *functions: Function) -> Exam:
        """Examine these functions by what the oracle says of them: `EXAM = Exam.of(oracle, …)` in functions.py."""
        probes = Path(sys.modules[oracle.__name__.rpartition(".")[0]].__path__[0], "probes.py")  # may be gone later
        text = probes.read_text("utf-8") if probes.is_file() else ""
        by_name = {function.name: function for function in functions}
        for function in functions:
            if unknown := [name for name in function.answered if name not in by_name]:
                raise Misnamed(f"answered of {function.name} names {unknown[0]!r}", likely(unknown[0], by_name))
        drivers = {function.driver for function in functions}
        for node in ast.parse(text, str(probes)).body:
            if isinstance(node, ast.FunctionDef) and node.name in drivers and not node.decorator_list:
                raise Misnamed(f"{node.name} is no driver yet", "@driver on the line above", probes, node.lineno)
        return cls(oracle, by_name, text)

    def planned(self, assignment: Assignment) -> dict[str, list[Planned]]:
        """List the cases of each item, without drawing anything.

        No two cases of a function have the same sizes, so that what one leaves behind shows in the law of state alone.
        """
        taken: dict[str, set[tuple[int, ...]]] = defaultdict(set)
        return {
            item.id: [_with_sizes_of_its_own(one, taken[item.function]) for one in self._planned(item)]
            for item in assignment.items
        }

    def _planned(self, item: Item) -> list[Planned]:
        if not item.laws:
            return []
        function, laws, draws = self._judging(item)
        planned: dict[str, Planned] = {}
        if idle := [law for law in laws if not any([*law.calls(function, draws, p)] for p in PLACES.values())]:
            told = f"{item.id} has the law {idle[0].name}, which adds no case to {function.name}"
            raise Misnamed(told, "a declaration of what the law is about, or an item without it")
        for name in reversed(item.examples):
            if name not in function.examples:
                raise Misnamed(f"{item.id} names the example {name!r}", likely(name, function.examples))
            example = function.examples[name]
            call = Call(name, example.title, USUAL, fixed=example.arguments, options=example.options)
            looked_at = _looked_at(laws, call)
            planned[name] = Planned(name, "public", function, LAWS["values"], call, looked_at, item.parts)
        for (visibility, place), law in itertools.product(PLACES.items(), laws):
            for call in law.calls(function, draws, place):
                case = "-".join([item.id, call.label.replace("_", "-").strip("-"), *(["other"] if place == 2 else [])])
                looked_at = _looked_at(laws, call)
                planned.setdefault(case, Planned(case, visibility, function, law, call, looked_at, item.parts))
        if not (planned or item.public or item.hidden):
            raise Misnamed(f"{item.id} has no case: its laws are off, or add none to {item.function}", "another law")
        return [*planned.values()]

    def _judging(self, item: Item) -> tuple[Function, list[Law], Sequence[str]]:
        """Return an item's function, the laws that hold of it, the draws."""
        if item.function not in self.functions:
            told = f"{item.id} is judged by laws, and functions.py declares no {item.function}"
            raise Misnamed(told, "a Function of that name")
        function, draws = self.functions[item.function], item.draws or (USUAL,)
        for what, names, known in (("law", item.laws, LAWS), ("draw", draws, function.draws)):
            if unknown := [name for name in names if name not in known]:
                raise Misnamed(f"{item.id} names the {what} {unknown[0]!r}", f"one of {', '.join(known)}")
        return function, [LAWS[name] for name in item.laws if name not in function.off], draws

    def expanded(self, assignment: Assignment) -> Assignment:
        """List the derived cases in the items, after those that they name themselves."""
        items = []
        for item, planned in zip(assignment.items, self.planned(assignment).values(), strict=True):
            names = {kind: tuple(one.case for one in planned if one.visibility == kind) for kind in PLACES}
            items.append(replace(item, public=item.public + names["public"], hidden=item.hidden + names["hidden"]))
        return replace(assignment, items=tuple(items))

    def draft(self, planned: Planned, secret: str, draw: Any) -> Draft:
        """Draw one case; it is an example where a further draw is the same whatever the numbers, as an empty text."""
        function, call = planned.function, planned.call
        is_usual = not (call.judged or call.dtype) and call.fixed is None and call.draw not in function.wide
        if planned.visibility == "public" and is_usual and "values" in planned.aspects:
            usual = call.arguments(function, generator_for(secret, planned.case), call.sizes)
            if any(part.endswith(AFTERWARDS) for part in function.parts(usual) or ()):
                # .double() or .float() is a copy in one dtype alone, where a step on it changes no argument
                call = replace(call, dtype=function.dtypes[-1])

        def arguments(rng: np.random.Generator) -> dict[str, Any]:
            return {**call.arguments(function, rng, call.sizes)}

        if call.draw != USUAL and call.fixed is None:
            drawn = [arguments(np.random.default_rng(seed)) for seed in range(CONSTANT_DRAWS)]
            bare = [{k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in one.items()} for one in drawn]
            call = replace(call, fixed=drawn[0] if all(one == bare[0] for one in bare) else None)

        def anew(number: int = 0) -> Draft:
            key = f"{planned.case} {number}" if number else planned.case
            drawn = arguments(generator_for(secret, key))
            titled = replace(call, title=_title(planned, drawn))
            return draft_of(replace(planned, call=titled), drawn, self.oracle, draw)

        made = anew() if call.finish is None else call.finish(anew(), anew)
        return with_answers(made, function, self.oracle)

    # Counterexamples

    def small_draws(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Name every draw at sizes of trials, and say how it is drawn: one that does not end would stop the grader."""
        for function in self.functions.values():
            for draw, step in itertools.product(function.draws, range(0, STEPS, 4)):
                sizes = function.growing(draw, step / STEPS)
                made = functools.partial(function.drawn, draw, np.random.default_rng(step), sizes)
                yield f"the draw {draw} of {function.name} at {_shown_sizes(sizes)}", made

    def chased(self, items: Sequence[Item]) -> dict[str, Callable[[np.random.Generator, int], Trial]]:
        """Say of each item that judges values, gradients or errors how its trials are drawn."""
        return {item.id: functools.partial(self._trial, item) for item in items if CHASED & {*item.laws}}

    def _trial(self, item: Item, rng: np.random.Generator, number: int) -> Trial:
        function, laws, draws = self._judging(item)
        draw = draws[number % len(draws)]
        # of a statistic the author's tolerance holds at usual sizes and values, not of what is made simpler
        share = 1 if "sampled" in function.options else min(number, STEPS) / STEPS
        call = Call("", "", draw, function.growing(draw, share))
        about = [law for law in laws if law.name in ("falsy", "errors")]
        others = [(other, p) for law in about for p in PLACES.values() for other in law.calls(function, draws, p)]
        if others and (number % 2 or "values" not in item.laws):
            other, place = others[number // 2 % len(others)]
            call = replace(other, sizes=function.sized(place))
        for more in range(STEPS):  # which the contract speaks of: every size is larger by one after each try
            arguments = call.arguments(function, rng, {axis: size + more for axis, size in call.sizes.items()})
            if function.valid(arguments):
                break
        else:
            raise Misnamed(f"{function.name} has no valid arguments at small sizes", "draws that `valid` allows")
        planned = Planned("", "public", function, LAWS["values"], call, _looked_at(laws, call), item.parts)
        draft = draft_of(planned, arguments, self.oracle)
        axes = {name: function.axes(name) for name, array in draft.inputs.items()}
        axes = {name: listed for name, listed in axes.items() if draft.inputs[name].ndim == len(listed)}
        counts = {axis: int(axis) for listed in axes.values() for axis in listed if axis.isdigit()}
        return Trial(
            draft.probe,
            draft.inputs,
            draft.params,
            draft.answer,
            _driven(draft, function, self.probes) if function.driver else shown(draft, function),
            {name: " ".join(listed) for name, listed in axes.items()},
            {**(call.sizes if draft.sampled else function.lowest(call.draw)), **counts},
            tuple(
                name for name in draft.inputs if draft.sampled or not function.is_float(name) or name in function.fixed
            ),
            function.valid,
        )


def _looked_at(laws: Sequence[Law], call: Call) -> frozenset[str]:
    """Say what is looked at in a call: what the laws of its item look at, or what the call is about."""
    aspects = frozenset[str]().union(*(law.aspects for law in laws))
    if call.judged:  # whatever a call is about, right values count in their item
        return call.judged | aspects & LAWS["values"].aspects
    return aspects or frozenset({"values"})


def _with_sizes_of_its_own(planned: Planned, taken: set[tuple[int, ...]]) -> Planned:
    """Make usual sizes larger, as little as it takes, until no case of the function before has the same."""
    call, usual = planned.call, planned.function.sized(PLACES[planned.visibility])
    if not usual or call.fixed is not None:
        return replace(planned, call=replace(call, title=call.title or call.label))
    least = {**usual, **call.sizes}
    free = [axis for axis, size in least.items() if size == usual[axis]]
    sizes, is_error = least, planned.law.name == "errors"  # a call that must raise leaves no value to be judged
    for several in _steps(len(free)):
        larger = least | {axis: usual[axis] + step for axis, step in zip(free, several, strict=True)}
        differ = len(set(larger.values())) == len(larger) or len(set(least.values())) < len(least)
        key = (*larger.values(),)[-2:]  # what is kept by size is kept by run and action as a rule, whatever the steps
        if differ and (is_error or key not in taken) and planned.function.fits(larger):
            sizes = larger
            break
    if not is_error:
        taken.add(key)
    return replace(planned, call=replace(call, sizes=sizes))


@functools.cache
def _steps(axes: int) -> list[tuple[int, ...]]:
    """List by how much axes may be larger, the least in all first."""
    steps = itertools.product(range({1: 40, 2: 10}.get(axes, 5)), repeat=axes)
    return sorted(steps, key=lambda several: (sum(several), several))


def _title(planned: Planned, arguments: Mapping[str, Any]) -> str:
    """Title a case, with the sizes of what was drawn: a draw may have sizes of its own."""
    function, call = planned.function, planned.call
    arrays = [(function.axes(name), one.shape) for name, one in arguments.items() if isinstance(one, np.ndarray)]
    drawn = {axis: size for axes, shape in arrays for axis, size in zip(axes, shape, strict=False)}
    sizes = {} if call.fixed is not None else {axis: drawn.get(axis, size) for axis, size in call.sizes.items()}
    return ": ".join(filter(None, (call.title, _shown_sizes(sizes))))


def _shown_sizes(sizes: Mapping[str, int]) -> str:
    """Say the sizes of a call: `run 5, action 3`."""
    return ", ".join(f"{axis} {size}" for axis, size in sizes.items())


def shown(draft: Draft, function: Function) -> dict[str, str]:
    """Write the call of a draft as a student may type it, for each thing that is looked at."""
    params, words = draft.params, _words(draft)
    written = function.written(params.get("given", {})) if function.written else Written("", [])

    def call(**instead: str) -> str:
        """Write the call, with other words for some arguments."""
        if function.written:
            arguments = [instead.get(text.strip("{}"), text) for text in written.arguments]
        else:
            by_name = {*params.get("by_name", ()), *(instead.keys() - words.keys())}
            arguments = [f"{name}={said}" if name in by_name else said for name, said in (words | instead).items()]
        return f"{params['function']}({', '.join(arguments)})"

    def used(names: Sequence[str], line: str, grad: str = "") -> str:
        """Assign arguments first, unless they can be read where they are; the line's NAME is the first one."""
        own = {name: name for name in dict.fromkeys(names) if name not in written.read}
        lines = "".join(f"{name} = {{{name}}}{grad}\n" for name in own)
        return f"{lines}{line}".replace("CALL", call(**own)).replace("NAME", written.read.get(names[0], names[0]))

    texts = {"": call()}
    if len(params["returns"]) > 1:
        keyed = function.kind.startswith("a dictionary")
        texts |= {name: f"{call()}[{(name if keyed else place)!r}]" for place, name in enumerate(params["returns"])}
    texts |= {f"{name} afterwards": used([name], "CALL\nNAME") for name in draft.inputs}
    leaves = [leaf for leaf in function.leaves if leaf in draft.inputs]
    last = "CALL.sum().backward()\nNAME.grad" if leaves else "CALL.requires_grad"  # nothing is differentiated
    for name in (*params.get("leaves", ()), *params.get("constants", ())):
        backward = used([name, *leaves], last, ".requires_grad_()")
        texts |= {f"gradient {name}": backward, f"pull of {name}": backward}
    texts = {name: f"{written.before}{text}" for name, text in texts.items()}
    for name, instead in params.get("raises", {}).items():
        if function.written:
            raised = function.written({**params["given"], **instead})
            texts[name] = f"{raised.before}{params['function']}({', '.join(raised.arguments)})"
        else:
            texts[name] = call(**{argument: _typed(value, params) for argument, value in instead.items()})
    return texts


def _words(draft: Draft) -> dict[str, str]:
    """Write each argument of a call, in order, as a student may type it; an input is a place to be filled."""
    words = {name: f"{{{name}}}" for name in draft.inputs}
    words |= {name: repr(one) for name, one in unkeyed(draft.params.get("given", {})).items()}
    words |= {name: as_python(one) for name, one in draft.params.get("formulas", {}).items()}
    return {name: words[name] for name in draft.params["arguments"]}


def _driven(draft: Draft, function: Function, probes: str) -> dict[str, str]:
    """Write what a driver does with what the student wrote, as lines to paste: the last one is what it returns."""
    names, lines = driver_in(probes, function.driver)
    words = _words(draft)
    return {"": "\n".join([*(f"{name} = {words[name]}" for name in names if name in words), *lines])}


def _typed(value: Any, params: Mapping[str, Any]) -> str:
    if isinstance(value, list) and params.get("values", "torch") != "python":
        return f"{'np.array' if params['values'] == 'numpy' else 'torch.tensor'}({value})"
    return as_python(value)

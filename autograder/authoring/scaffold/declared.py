"""Try a solution's functions, and declare each in the text of functions.py with the first draws that it answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.calls import Formula, is_numbers
from autograder.authoring.scaffold.solution import GUIDE, Argument, Solution, SourceFunction
from autograder.sandbox.calls import Array, Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

PROBES = '''\
"""How a worker calls the functions: as the kit's own probes do, once or several times."""

from autograder.sandbox.worker.calling import again, call

__all__ = ["again", "call"]
'''
FLOATS = ("rng.uniform(-2, 2, {size})", "rng.uniform(0.2, 3, {size})", "rng.dirichlet(np.ones({last}){rest})")
INTS = ("rng.integers(0, 10, {size})", "rng.integers(0, {other}, {size})")
NUMBERS = ((0.5, 3.0), (0.1, 0.9), (-2.0, 2.0))
ENTRY, TABLE, NUMBER = ("entry",), ("row", "column"), None  # what is tried where nothing says the axes
UNSAID: Mapping[str, Sequence[tuple[str, ...] | None]] = {"python": (NUMBER, ENTRY, TABLE)}
LEAST = (1, 3)
PUBLIC, HIDDEN = 4, 7  # sizes of the first axis; each further axis has one more
PLACES = (1, 0, 2)  # of the sizes, in the order in which they are tried
SEEDS = range(3)
TRIES = 40
WIDTH = 110
HELPERS = {
    "text(": """\
def text(rng, letters):
    return "".join(rng.choice([*letters], rng.integers(4, 12))) if letters else ""


""",
    "anagrams(": """\
def anagrams(rng, found, first, *others):
    return found | {name: "".join(rng.permutation([*found[first]])) for name in others}


""",
    "words(": """\
def words(rng):
    return [text(rng, "abcde") for _ in range(rng.integers(3, 7))]


""",
}
FORMULAS = ("x * x - 2", "x * x - 0.5 * y", "x * x - 0.5 * y + z")
NUMERIC = ("a tensor", "a NumPy array", "a number")


@dataclass(frozen=True)
class Variant:
    """How numbers are drawn: arrays of floats and of ints, single numbers, axes that nothing says, the least size."""

    unsaid: tuple[str, ...] | None = ENTRY
    ints: str = INTS[0]
    floats: str = FLOATS[0]
    numbers: tuple[float, float] = NUMBERS[0]
    least: int = LEAST[0]


@dataclass(frozen=True)
class Declared:
    """A function as functions.py declares it.

    returns    shape of what comes back, {name: shape} of several, None where it is compared as it is
    kind       what comes back, as a phrase
    leaves     arguments that the result has a gradient with respect to
    sloped     the parts, of several, that have a gradient
    draws      of the draws that were tried those that it answers
    refused    arguments whose words it checks, with ValueError
    infinite   whether some of what comes back is infinite
    off        law → why the solution does not keep it
    problem    why no draw is answered; "" where one is
    alike      whether all cases have the same answer
    """

    function: SourceFunction
    values: str
    variant: Variant = field(default_factory=Variant)
    returns: str | Mapping[str, str] | None = None
    kind: str = ""
    leaves: tuple[str, ...] = ()
    sloped: tuple[str, ...] = ()
    draws: tuple[str, ...] = ("usual",)
    refused: tuple[str, ...] = ()
    infinite: bool = False
    off: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    alike: bool = False

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments, those of which nothing says the axes with the axes that are tried."""
        guess, found = self.variant.unsaid, []
        for one in self.function.arguments:
            is_open = one.unsaid and one.axes == ENTRY
            axes = guess if is_open and (guess is not NUMBER or not one.kind) else one.axes
            found.append(replace(one, kind="float" if is_open else one.kind, axes=axes))
        return tuple(found)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of all axes."""
        return tuple(dict.fromkeys(axis for one in self.arguments for axis in one.axes or () if not axis.isdigit()))

    @property
    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """The least, public and hidden size of each axis."""
        return {axis: (self.variant.least, PUBLIC + n, HIDDEN + n) for n, axis in enumerate(self.axes)}

    def draw_text(self) -> str:
        """Write the functions that draw the arguments."""
        name = self.function.name
        letters = ['letters="abcde "'] if self._texts else []
        notes = [f"{one.name}: {one.unsaid}." for one in self.arguments if one.unsaid]
        if self.problem:
            why = f"{name} answers no draw that was tried ({self.problem})"
            notes.append(f"{why}. Draw what it answers; uncomment its items.")
        elif self.alike:
            notes.append(f"all cases of {name} have the same answer: add a draw that has another.")
        else:
            notes.append("are these usual arguments? Add draws of what is special: equal, zero, large, few.")
        rows = [f'        "{one.name}": {self._drawn(one)},' for one in self.arguments]
        body = [*(f"    # TODO: {note}" for note in notes), "    return {", *rows, "    }"]
        heads = {f"{name}_arguments({', '.join(['rng', *self.axes, *letters])})": body}
        for draw in self.draws[1:]:
            heads[f"{name}_{draw}({', '.join(['rng', *self.axes])})"] = [f"    return {self.further[draw]}"]
        return "\n\n".join("\n".join([f"def {head}:", *lines, ""]) for head, lines in heads.items())

    @property
    def further(self) -> dict[str, str]:
        """Write the draws that may stand besides the usual one: name → expression."""

        def usual(*more: str) -> str:
            return f"{self.function.name}_arguments({', '.join(['rng', *self.axes, *more])})"

        found = {}
        for one in self.arguments:
            for word in one.words[1:]:
                slug = "".join(letter if letter.isalnum() else "_" for letter in word.lower())
                found[f"{one.name}_{slug}"] = f'{usual()} | {{"{one.name}": {_shown(word)}}}'
        if self._texts:
            found |= {"repeats": usual('letters="ab"'), "empty": usual('letters=""')}
        if self._texts[1:]:
            found["anagrams"] = f"anagrams(rng, {usual()}, {', '.join(map(_shown, self._texts))})"
        return found

    @property
    def _texts(self) -> list[str]:
        return [one.name for one in self.arguments if one.kind == "str" and not one.words and not one.default]

    def _drawn(self, one: Argument) -> str:
        """Write the expression that draws an argument."""
        if one.axes is not None:
            return self._array(one)
        if one.kind in ("", "str") and one.default:
            return _shown(one.default[0])
        same = [other.name for other in self.arguments if other.kind == one.kind and other.axes is None]
        place = same.index(one.name)
        match one.kind:
            case "float":
                low, high = self.variant.numbers
                if one.default and one.default[0]:
                    low, high = sorted((one.default[0] / 2, one.default[0] * 2))
                return f"round(rng.uniform({low:g}, {high:g}), 3)" if high > 0.1 else f"rng.uniform({low:g}, {high:g})"
            case "int":
                low = one.default[0] if one.default and one.default[0] is not None else 1 + 3 * place
                return f"int(rng.integers({low}, {low + 3}))"
            case "bool":
                return "bool(rng.integers(2))"
            case "str":
                return _shown(one.words[0]) if one.words else "text(rng, letters)"
            case "texts":
                return "words(rng)"
            case "table":
                return "{word: int(rng.integers(1, 10)) for word in words(rng)}"
            case "function":
                return f'Formula("{" ".join("xyzuvw"[: one.takes])}", "{FORMULAS[min(one.takes, 3) - 1]}")'
            case _:
                return "None"

    def _array(self, one: Argument) -> str:
        axes = one.axes or ()
        size = axes[0] if len(axes) == 1 else f"({', '.join(axes)})"
        if one.kind == "bool":
            return f"rng.random({size}) < 0.5"
        other = next((axis for axis in self.axes if axis not in axes), "2")
        pattern = self.variant.floats if one.kind == "float" else self.variant.ints
        rest = f", ({', '.join(axes[:-1])},)" if axes[1:] else ""
        return pattern.format(size=size, last=axes[-1] if axes else 1, rest=rest, other=other)

    def declaration_text(self) -> str:
        """Write the `Function`."""
        function = self.function
        draws = [f'"{draw}": {function.name}_{"arguments" if draw == "usual" else draw}' for draw in self.draws]
        arguments = [f'"{one.name}": "{one.shape}"' for one in self.arguments]
        sizes = ", ".join(f'"{axis}": {several}' for axis, several in self.sizes.items())
        defaults = {one.name: one.default[0] for one in self.arguments if one.default}
        by_name = [one.name for one in self.arguments if one.by_name]
        words = {one.name: [*one.words] for one in self.arguments if one.name in self.refused}
        options: dict[str, Any] = {"by_name": by_name} if by_name else {}
        options |= {"infinite": "the solution returns it"} if self.infinite else {}
        options |= {"gradients_of": [*self.sloped]} if len(self.sloped) > 1 else {}
        lines = [
            f'"{function.name}",',
            *_rows("", arguments),
            f"{_shown(self.returns)},",
            f"sizes={{{sizes}}}," + ("  # least, public and hidden size" if sizes else ""),
            *_rows("draws=", draws),
            f'values="{self.values}",',
            *([f"kind={_shown(self.kind)},"] if self.kind else []),
        ]
        more = {"leaves": [*self.leaves], "defaults": defaults, "words": words, "options": options}
        lines += [f"{name}={_shown(part)}," for name, part in more.items() if part]
        if self.off:
            rows = [
                f"    {_shown(law)}: {_shown(why)},  # TODO: is it meant not to keep it?"
                for law, why in self.off.items()
            ]
            lines += ["off={", *rows, "},"]
        for line, name in () if self.refused else self.function.raises:
            lines.append(f"# TODO: which calls must raise ValueError, as line {line} of your file does? For example")
            lines.append(
                f'# errors={{"{name}": Error({{"{name}": 0}}, ["{name}"])}}, and an item with laws = ["errors"]'
            )
        return "    Function(\n" + "".join(f"        {line}\n" for line in lines) + "    ),\n"


def _rows(head: str, entries: Sequence[str]) -> list[str]:
    """Write a dictionary in one line where that is short."""
    if len(line := f"{head}{{{', '.join(entries)}}},") <= WIDTH:
        return [line]
    return [f"{head}{{", *(f"    {entry}," for entry in entries), "},"]


def _shown(one: Any) -> str:
    """Write it as Python, in double quotes."""
    if isinstance(one, str):
        return repr(one) if '"' in one else '"' + repr(one)[1:-1].replace("\\'", "'") + '"'
    if isinstance(one, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(value)}" for key, value in one.items()) + "}"
    return "[" + ", ".join(map(_shown, one)) + "]" if isinstance(one, list) else repr(one)


def functions_text(several: Sequence[Declared]) -> str:
    """Write functions.py."""
    draws = "\n\n".join(one.draw_text() for one in several)
    declarations = "".join(one.declaration_text() for one in several)
    helpers = "".join(
        text for name, text in HELPERS.items() if name in draws or (name == "text(" and "words(" in draws)
    )
    formula = "from autograder.authoring.calls import Formula\n" if "Formula(" in draws else ""
    error = "Error, " if "Error(" in declarations else ""
    return f'''\
"""The graded functions: how their arguments are drawn, and what they are. Their cases follow from laws.

A draw has the random numbers `rng` and the size of each axis. `autograder selfcheck` lists each line that says TODO;
fixtures/README.md and `autograder/authoring/laws/declaration.py` say what else a Function may declare.
"""

import numpy as np

{formula}from autograder.authoring.laws import {error}Exam, Function

from . import oracle


{helpers}{draws}

EXAM = Exam.of(
    oracle,
{declarations})
'''


@dataclass
class Trial:
    """A sandbox with the solution."""

    solution: Solution
    sandbox: Sandbox

    def declared(self, function: SourceFunction) -> Declared:
        """Declare a function with the first variant of draws that it answers at every size."""
        first = Declared(function, self.solution.values)
        problem = ""
        for variant in itertools.islice(_variants(first), TRIES):
            chosen = replace(first, variant=variant)
            found = self._answered(chosen, "usual")
            if isinstance(found, str):
                problem = problem or found
                continue
            chosen = self._described(chosen, found)
            if chosen.problem:
                problem = problem or chosen.problem
                continue
            more = [
                name
                for name in chosen.further
                if not isinstance(self._answered(replace(chosen, draws=("usual", name)), name), str)
            ]
            return replace(chosen, draws=("usual", *more), refused=self._refused(chosen))
        return replace(first, problem=" ".join(problem.split())[:120])

    def _answered(self, declared: Declared, draw: str) -> list[tuple[Mapping[str, Any], Outcome]] | str:
        """Call it at each size with several numbers: arguments and answers, else why there is none."""
        namespace: dict[str, Any] = {"np": np, "Formula": Formula}
        exec("".join(HELPERS.values()) + declared.draw_text(), namespace)
        drawn = namespace[f"{declared.function.name}_{'arguments' if draw == 'usual' else draw}"]
        calls = []
        for place, seed in itertools.product(PLACES, SEEDS):
            sizes = {axis: several[place] for axis, several in declared.sizes.items()}
            calls.append(drawn(np.random.default_rng(seed), **sizes))
        seen = self._called(declared, calls, plain=True)
        if failed := next((outcome for outcome in seen if outcome.observation is None), None):
            if failed.loading:
                raise UsageError(f"{self.solution.path} cannot be loaded: {_ending(failed)}.")
            return _ending(failed)
        return list(zip(calls, seen, strict=True))

    def _described(self, declared: Declared, answers: Sequence[tuple[Mapping[str, Any], Outcome]]) -> Declared:
        """Say what comes back; `problem` is set where that cannot be graded."""
        arguments, first = answers[0]
        facts = first.observation.facts if first.observation else {}
        kind, plain = str(facts.get("kind")), facts.get("result")
        names = _names(declared.function, kind, plain, facts.get("parts"))
        if not names:
            if kind == "nothing" or (plain == kind and kind != "text"):
                return replace(declared, problem=f"it returns {kind}; {GUIDE} says what is compared")
            return declared
        seen = self._called(declared, [named for named, _ in answers], returns=names)
        parts = [outcome.observation.returned[name].array for outcome in seen if outcome.observation for name in names]
        arrays = [array for array in parts if array is not None]
        if len(arrays) < len(names) * len(answers):
            if plain != kind:
                return declared  # such as a dictionary of other keys for other arguments
            return replace(declared, problem=f"it returns {kind} of what are no numbers; {GUIDE} says what is compared")
        if any(np.isnan(array).any() for array in arrays):
            return replace(declared, problem="it returns nan, which no answer equals")
        shapes = _shapes(declared, {name: arrays[place :: len(names)] for place, name in enumerate(names)})
        is_told = self.solution.values != "torch" or kind in ("a list", "a dictionary")
        slopes = {name: self._leaves(declared, arguments, names, name) for name in names}
        leaves = [one.name for one in declared.arguments if any(one.name in found for found in slopes.values())]
        return replace(
            declared,
            returns=shapes[names[0]] if names == [declared.function.name] else shapes,
            kind=kind if is_told else "",
            leaves=tuple(leaves),
            sloped=tuple(name for name, found in slopes.items() if found),
            infinite=any(np.isinf(array).any() for array in arrays),
        )

    def _leaves(
        self, declared: Declared, arguments: Mapping[str, Any], names: Sequence[str], part: str
    ) -> tuple[str, ...]:
        """Name the arguments that a gradient of that part reaches."""
        if self.solution.values != "torch":
            return ()
        floats = [one.name for one in declared.arguments if one.shape.startswith("float[")]
        (seen,) = self._called(declared, [arguments], returns=names, leaves=floats, gradients_of=[part])
        slopes = seen.observation.returned if seen.observation else {}
        found = {name: getattr(slopes.get(f"gradient {name}"), "array", None) for name in floats}
        return tuple(name for name, array in found.items() if array is not None and np.abs(array).max(initial=0) > 0)

    def _refused(self, declared: Declared) -> tuple[str, ...]:
        """Name the arguments of which another word than theirs raises ValueError that mentions it."""
        found = []
        answers = self._answered(declared, "usual")
        for one in declared.arguments if isinstance(answers, list) else ():
            if one.words and isinstance(answers, list):
                (seen,) = self._called(declared, [{**answers[0][0], one.name: "unheard-of"}], plain=True)
                if seen.raised and "ValueError" in seen.raised.types and "unheard-of" in seen.raised.message:
                    found.append(one.name)
        return tuple(found)

    def _called(self, declared: Declared, calls: Sequence[Mapping[str, Any]], **more: Any) -> list[Outcome]:
        values, requests = self.solution.values, []
        for drawn in calls:
            inputs: dict[str, Array] = {}
            for one in declared.arguments:
                if isinstance(drawn[one.name], np.ndarray) or is_numbers(drawn[one.name]):
                    array = np.asarray(drawn[one.name])
                    inputs[one.name] = array if array.dtype.kind != "i" else array.astype("int64")
            formulas = {name: one.stated for name, one in drawn.items() if isinstance(one, Formula)}
            given = {name: one for name, one in drawn.items() if name not in inputs and name not in formulas}
            params = {
                "function": declared.function.name,
                "arguments": [one.name for one in declared.arguments],
                "by_name": [one.name for one in declared.arguments if one.by_name],
                "values": values,
                "returns": [],
                "given": given,
                "formulas": formulas,
                **more,
            }
            requests.append(
                Request("trial", declared.function.name, "call", params, safetensors.numpy.save(inputs), 5.0)
            )
        program = Program("solution", self.solution.text, {}, PROBES, values == "torch")
        return self.sandbox.run(program, requests, load_timeout=20.0)


def _variants(declared: Declared) -> Iterator[Variant]:
    """All combinations of what matters to this function, the usual ones first."""
    arguments = declared.function.arguments
    has = {one.kind for one in arguments if one.axes is not None}
    choices = (
        UNSAID.get(declared.values, (ENTRY, TABLE, NUMBER))
        if any(one.axes == ENTRY and one.unsaid for one in arguments)
        else (ENTRY,),
        LEAST if declared.axes else LEAST[:1],
        INTS if "int" in has else INTS[:1],
        FLOATS if "float" in has else FLOATS[:1],
        NUMBERS if any(one.kind == "float" and one.axes is None for one in arguments) else NUMBERS[:1],
    )
    for unsaid, least, ints, floats, numbers in itertools.product(*choices):
        yield Variant(unsaid, ints, floats, numbers, least)


def _names(function: SourceFunction, kind: str, plain: Any, parts: Any) -> list[str]:
    """Name the parts that are numbers; none where what comes back is compared as it is."""
    if kind in NUMERIC or (isinstance(plain, list) and is_numbers(plain) and not kind.startswith("a tuple")):
        return [function.name]
    if kind.startswith("a tuple of "):
        count = int(kind.rpartition(" ")[2])
        is_numeric = isinstance(parts, list) or (isinstance(plain, list) and all(map(_is_numeric, plain)))
        named = function.parts if len(function.parts) == count else tuple(f"part{n + 1}" for n in range(count))
        return [*named] if is_numeric else []
    if isinstance(parts, list):
        return [str(one) for one in parts] if len(parts) > 1 or kind == "a dictionary" else []
    return [*plain] if isinstance(plain, dict) and len(plain) > 1 and all(map(_is_numeric, plain.values())) else []


def _is_numeric(one: Any) -> bool:
    return is_numbers(one) or type(one) in (int, float)


def _shapes(declared: Declared, parts: Mapping[str, Sequence[Array]]) -> dict[str, str]:
    """Write the shape of each part, its axes named as the docstring does or as the axes that have its sizes always."""
    found = {}
    for place, (name, arrays) in enumerate(parts.items()):
        said = declared.function.returns[place] if len(declared.function.returns) == len(parts) else ()
        axes = [_axis(declared, [array.shape[n : n + 1] for array in arrays], n) for n in range(arrays[0].ndim)]
        axes = [*said] if len(said) == arrays[0].ndim else axes
        axes = [axis if axes.count(axis) == 1 else f"{axis}{n}" for n, axis in enumerate(axes)]
        kind = {"f": "float", "b": "bool"}.get(arrays[0].dtype.kind, "int")
        found[name] = f"{kind}[{' '.join(axes)}]" if axes else kind
    return found


def _axis(declared: Declared, sizes: Sequence[tuple[int, ...]], place: int) -> str:
    """Name the axis whose size these are, of one answer after another."""
    for axis, several in declared.sizes.items():
        if [*sizes] == [(several[n],) for n in PLACES for _ in SEEDS]:
            return axis
    return f"axis{place}"


def _ending(outcome: Outcome) -> str:
    """Say how a call ended that returned nothing."""
    raised = outcome.raised
    if raised is None:
        return outcome.exceeded or outcome.detail or outcome.status
    return f"{raised.types[0]}: {raised.message[:160]}" + (f" (line {raised.line})" if raised.line else "")

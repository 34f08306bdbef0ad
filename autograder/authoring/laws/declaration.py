"""Declare a graded function: how its arguments are drawn, what is true of it, what it is.

    update_values = Function(
        "update_values",
        {"estimates": "float[run action]", "counts": "int[run action]", "actions": "int[run]", "rewards": "float[run]"},
        {"estimates": "float[run action]", "counts": "int[run action]"},
        sizes={"run": (1, 5, 12), "action": (1, 3, 6)},
        draws={"usual": updates, "fresh": first_updates},
    )

The laws (`autograder.authoring.laws`) derive from it the cases of each item and the trials of a counterexample.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from autograder.authoring.faults import Misnamed, likely

Arguments = Mapping[str, Any]
Draw = Callable[..., Arguments]
SHAPE = re.compile(r"(float|int|bool)\[(.*)\]|float|int|bool|word|function|other")
USUAL = "usual"
OPTIONS = ("dtype", "gradients_of", "constant", "infinite", "sampled", "rtol", "atol")


@dataclass(frozen=True)
class Error:
    """A call that must raise.

    instead   argument → what stands instead: a value, or a function of the usual arguments
    mentions  words that the message must hold
    """

    instead: Mapping[str, Any]
    mentions: Sequence[str] = ()
    kind: str = "ValueError"

    def __post_init__(self) -> None:
        """Refuse a text in place of a list, whose letters nobody meant."""
        if isinstance(self.mentions, str):
            raise Misnamed(f"mentions is {self.mentions!r}", f'a list: mentions=["{self.mentions}"]')


@dataclass(frozen=True)
class Example:
    """A call with fixed numbers, the same in every set: its title and its arguments."""

    title: str
    arguments: Arguments
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """How a student may type a call whose arguments are made of what is drawn.

    before      lines before it
    arguments   of the call: "{prompts}" is what was drawn
    read        what was drawn → how it is read after the call
    """

    before: str
    arguments: Sequence[str]
    read: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """What a graded function is.

    name        of the student's function and of the oracle's; the oracle's gradients are those of `<name>_gradient`
    arguments   in order: "float[batch trial]", "int[run 2]", "bool[...]", "float", "int", "word", "function", "other".
                An axis can be as long as two others together: "float[prompt*trial pos]"
    returns     shape of what comes back, {name: shape} of several; None in place of a shape where it is compared as it
                is. A function of the arguments where it depends on them
    sizes       axis → its least, public and hidden size; no two public ones and no two hidden ones alike
    fits        whether sizes are small enough, where a function goes through everything that they allow
    least       draw → {axis: its least size there}, where that is another: {"normalized": {"trial": 2}}
    draws       name → function (rng, **sizes) → arguments; "usual" first. One may leave out an optional argument, and
                arrays that it makes float32 stay so wherever no law is about the dtype
    values      what arrays are: "torch", "numpy", "python"
    kind        what must come back where `kind` is judged: "a NumPy array", "a tuple of 2"
    dtypes      what floating arguments come in; the first is the usual one
    wide        draws whose numbers only the first dtype holds
    leaves      arguments that are differentiated; constants: those that must receive no gradient
    detached    whether a result whose gradient is 0 throughout may do without a graph
    defaults    optional argument → its default, which the handout states
    falsy       optional argument → a falsy value that means what it says: {"epsilon": 0.0}
    words       argument → the words that it may be; others must raise ValueError with the word in the message
    errors      name → call that must raise ValueError
    counted     functions among the arguments that are called as often as the docstring says
    examples    case → fixed numbers
    fixed       arguments whose values a counterexample may not simplify (whole numbers are never simplified)
    valid       whether the contract speaks of such arguments (of counterexamples that were made simpler)
    tolerances  draw → {"rtol": …, "atol": …} where usual ones are too strict
    options     dtype: of values where no array goes in; gradients_of: the parts of what is returned whose sum gradients
                are of, the first if nothing is said; constant: whether the result must carry no graph; infinite: why
                some of what is expected may be infinite; sampled: how often a right answer is refused, where values
                are statistics of random draws, with `atol`; rtol, atol
    by_name     arguments that have no place in the signature
    probe       of probes.py that calls it; params: more parameters of that probe
    driver      of probes.py, which uses what students write and returns what is judged, as for a class: the arguments
                are the driver's
    answered    other graded function that students may call here → what they pass it, made of the arguments, first a
                floating tensor: it answers as the oracle does, so that a mistake in it costs once
    written     (arguments that are no arrays) → how a call is typed, where that is not its arguments in order
    off         law → why it does not hold
    """

    name: str
    arguments: Mapping[str, str]
    returns: str | Mapping[str, str | None] | Callable[[Arguments], str | Mapping[str, str | None]] | None
    sizes: Mapping[str, tuple[int, int, int]]
    draws: Mapping[str, Draw]
    fits: Callable[[Mapping[str, int]], bool] = lambda sizes: True
    least: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    values: str = "torch"
    kind: str = ""
    dtypes: Sequence[str] = ("float64",)
    wide: Sequence[str] = ()
    leaves: Sequence[str] = ()
    detached: bool = False
    constants: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    falsy: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    errors: Mapping[str, Error] = field(default_factory=dict)
    counted: Sequence[str] = ()
    examples: Mapping[str, Example] = field(default_factory=dict)
    fixed: Sequence[str] = ()
    valid: Callable[[Arguments], bool] = lambda arguments: True
    tolerances: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    by_name: Sequence[str] = ()
    probe: str = "call"
    driver: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    answered: Mapping[str, Callable[[Arguments], Sequence[Any]]] = field(default_factory=dict)
    written: Callable[[Mapping[str, Any]], Written] | None = None
    off: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise Misnamed where a part names what another does not have."""

        def check(is_right: bool, what: str, right: str) -> None:
            if not is_right:
                raise Misnamed(what, right)

        shapes = '"float[batch trial]", "int[run 2]", "float", "word", "function" or "other"'
        for argument, shape in self.arguments.items():
            check(bool(SHAPE.fullmatch(shape)), f"{self.name}: {argument} is {shape!r}", shapes)
            for part in (part for axis in self.axes(argument) for part in axis.split("*") if not part.isdigit()):
                told = f"{self.name}: {argument} has the axis {part!r}"
                check(part in self.sizes, told, "an axis that `sizes` names")
        for part in ("leaves", "constants", "defaults", "falsy", "words", "counted", "fixed", "by_name"):
            listed = getattr(self, part)
            check(not isinstance(listed, str), f"{part} of {self.name} is {listed!r}", f'a list: {part}=["{listed}"]')
            for name in listed:
                told = f"{part} of {self.name} names {name!r}"
                check(name in self.arguments, told, f"one of {', '.join(self.arguments)}")
        for name in self.options:
            check(name in OPTIONS, f"{self.name} has the option {name!r}", likely(name, OPTIONS))
        for options in (self.options, *self.tolerances.values(), *(each.options for each in self.examples.values())):
            for name in options.keys() & {"rtol", "atol"}:
                is_right = isinstance(options[name], numbers.Real) and options[name] >= 0
                right = f"a number that is not negative, such as {name}=1e-6"
                check(is_right, f"{name} of {self.name} is {options[name]!r}", right)
        for sizes in (list(self.sized(1).values()), list(self.sized(2).values())):
            check(len({*sizes}) == len(sizes), f"two axes of {self.name} have one size: {sizes}", "different ones")

    def axes(self, argument: str) -> tuple[str, ...]:
        """Name the axes of an argument; none of a number or of what is no array."""
        return tuple(axes_of(self.arguments[argument]).split())

    def is_float(self, argument: str) -> bool:
        """Tell whether an argument is a floating array."""
        return self.arguments[argument].startswith("float[")

    def parts(self, arguments: Arguments) -> dict[str, str | None] | None:
        """Name the axes of each part that comes back, such as "row column"; None of what is compared as it is."""
        returns = self.returns(arguments) if callable(self.returns) else self.returns
        if returns is None:
            return None
        several = returns if isinstance(returns, Mapping) else {self.name: returns}
        return {name: None if shape is None else axes_of(shape) for name, shape in several.items()}

    def sized(self, place: Literal[0, 1, 2]) -> dict[str, int]:
        """Say the least, public or hidden sizes."""
        return {axis: several[place] for axis, several in self.sizes.items()}

    def lowest(self, draw: str) -> dict[str, int]:
        """Say the least sizes that a draw has."""
        return self.sized(0) | dict(self.least.get(draw, {}))

    def growing(self, draw: str, share: float) -> dict[str, int]:
        """Say sizes between the least of a draw and the public ones."""
        lowest = self.lowest(draw)
        return {axis: round(lowest[axis] + share * (size - lowest[axis])) for axis, size in self.sized(1).items()}

    def drawn(self, draw: str, rng: np.random.Generator, sizes: Mapping[str, int], dtype: str = "") -> dict[str, Any]:
        """Draw arguments in the order of the signature; floating arrays come in `dtype`, the first one if none."""
        drawn = self.draws[draw](rng, **sizes)
        arguments = {name: drawn[name] for name in self.arguments if name in drawn}
        for name, argument in arguments.items():
            kind = self.arguments[name].partition("[")
            if argument is None or not kind[1]:
                arguments[name] = argument.item() if isinstance(argument, np.generic) else argument
                continue
            array = np.asarray(argument)
            usual = "float32" if array.dtype == np.float32 else self.dtypes[0]
            arguments[name] = array.astype({"float": dtype or usual, "bool": "bool", "int": "int64"}[kind[0]])
        return arguments


def axes_of(shape: str) -> str:
    """Name the axes of a shape: "row column" of "float[row column]", "" of what is no array."""
    return shape.partition("[")[2].removesuffix("]")

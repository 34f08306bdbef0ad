"""What came back from a call that was tried: what its parts are called, along which axes they lie, why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.authoring.beginning.signatures import Function
from autograder.authoring.drafts.draws import Drawn
from autograder.sandbox.calls import Outcome
from autograder.sandbox.observation import Array, Returned
from autograder.vocabulary.errors import UsageError

Refused = Mapping[str, Any]
RANDOM = "it answers the same arguments with other numbers: give it a seed, or the random numbers, as an argument"


class Unanswered(UsageError):  # noqa: N818 (a kind of UsageError, which is one)
    """No arguments were found that some functions answer: pairs of a sentence and a function."""

    @property
    def lines(self) -> list[str]:
        """The sentences."""
        return list(dict.fromkeys(str(told) for told, _ in self.args))

    def __str__(self) -> str:
        """All of them."""
        return "\n".join(self.lines)

    @property
    def functions(self) -> list[Function]:
        """The functions."""
        return [function for _, function in self.args]


@dataclass(frozen=True)
class Tried:
    """What was found of one function.

    small, large   arguments that it answers, with small and with large axes; `other` has other numbers besides, and
                   `brief` lacks those that have a default; the same as `large` where there are none
    returns        axes of what it returns; {name: axes} of a tuple or dictionary; None where it is compared as it is
    kind           what came back, as a phrase: "a NumPy array"
    dtype          of the first floating part
    infinite       whether some of what it returns is infinite
    leaves         inputs that its result has a gradient with respect to
    gradients_of   the parts of the result that have one
    errors         arguments that a check of its own refuses with ValueError, each with the argument that its text must
                   mention, where the docstring asks for that
    worded         for each other word that an argument may be, the same with it in `large`
    """

    function: Function
    small: Mapping[str, Any]
    large: Mapping[str, Any]
    other: Mapping[str, Any]
    brief: Mapping[str, Any]
    returns: str | Mapping[str, str] | None
    kind: str
    dtype: str
    square: bool
    infinite: bool = False
    leaves: tuple[str, ...] = ()
    gradients_of: tuple[str, ...] = ()
    errors: tuple[tuple[Mapping[str, Any], str], ...] = ()
    worded: Mapping[str, Tried] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of what it returns."""
        return (self.function.name,) if isinstance(self.returns, str) else tuple(self.returns or ())


def names_of(function: Function, kind: Any, plain: Any, parts: Any = None) -> list[str]:
    """Names for the parts that are numbers; none where what comes back is compared as it is."""
    if kind in ("a tensor", "a NumPy array", "a number"):
        return [function.name]
    if isinstance(parts, list) and not str(kind).startswith("a tuple of "):
        return [str(one) for one in parts] if len(parts) > 1 or kind == "a dictionary" else []
    if isinstance(kind, str) and kind.startswith("a tuple of "):
        count = int(kind.rpartition(" ")[2])
        return list(function.parts) if len(function.parts) == count else [f"part{n}" for n in range(1, 1 + count)]
    if isinstance(plain, dict) and plain and all(_is_numeric(one) for one in plain.values()):
        return list(plain)
    return [function.name] if isinstance(plain, list) and plain and _is_numeric(plain) else []


def is_alike(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are of one kind, and each part of as many axes."""
    return _form(one) == _form(other)


def _form(seen: Mapping[str, Any] | None) -> object:
    return seen and (seen["kind"], {name: array.ndim for name, array in seen["parts"].items()})


def _is_numeric(found: Any) -> bool:
    if isinstance(found, list):
        return bool(found) and all(map(_is_numeric, found))
    return isinstance(found, int | float) and not isinstance(found, bool)


def axes_of(
    function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[str | Mapping[str, str] | None, bool]:
    """The axes of each part, named as the docstring says or as the arguments' axes of that size; and whether a size is
    there twice.
    """
    parts = seen["parts"]
    if not parts:
        return None, False
    names = {
        size: axis
        for one in arguments.values()
        if isinstance(one, Drawn)
        for axis, size in zip(one.axes.split(), one.sizes, strict=True)
    }
    found: dict[str, str] = {}
    square = False
    for part, (name, array) in enumerate(parts.items()):
        axes = [names.get(size, f"axis{place}") for place, size in enumerate(array.shape)]
        square |= len(set(array.shape)) < array.ndim
        said = function.axes[part] if len(function.axes) == len(parts) else ()
        if len(set(said)) == array.ndim:
            axes = list(said)
        found[name] = " ".join(axis if axes.count(axis) == 1 else f"{axis}{place}" for place, axis in enumerate(axes))
    return (found[function.name] if list(found) == [function.name] else found), square


def nothing_to_compare(kind: Any, plain: Any) -> str:
    """Why what came back, which is no number, is not compared as it is either; "" where it is."""
    if kind == "nothing":
        return "it returned nothing, and what it prints or changes is not graded"
    if kind == "a list" and plain == kind:
        told = "a list of one array alone, or of what are no numbers"
        return f"it returned {told}: return the array itself, a tuple, or lists of numbers"
    if plain == kind and kind != "text":
        return f"it returned {kind}, and numbers, arrays, text, truth values, lists and dictionaries are compared"
    return ""


def unread(kind: Any, values: str) -> str:
    """Why what came back has a part that cannot be graded."""
    if values == "torch":
        return f"it returned {kind} that is no tensor: the file imports torch, so all functions take and return tensors"
    return f"it returned {kind} of what are no numbers"


def changed_arguments(returned: Mapping[str, Returned], inputs: Mapping[str, Array]) -> list[str]:
    """The inputs that are others after the call."""
    after = {name: returned.get(f"{name} afterwards") for name in inputs}
    arrays = {name: None if one is None else one.array for name, one in after.items()}
    return [n for n, given in inputs.items() if (now := arrays[n]) is None or not np.array_equal(now, given)]


def is_the_same(one: Mapping[str, Any] | None, again: Mapping[str, Any] | None) -> bool:
    """Whether two answers to the same arguments are one."""
    if one is None or again is None or one["plain"] != again["plain"]:
        return False
    return all(np.array_equal(array, again["parts"].get(name)) for name, array in one["parts"].items())


def ungraded(function: str, why: str) -> str:
    """A sentence for a function that no case can hold to anything."""
    return f"{function} cannot be graded: {why}. Mend that, or let its name begin with _, and students get it as it is."


def ending(outcome: Outcome) -> str:
    """How a call ended that returned nothing."""
    raised = outcome.raised
    if raised is None:
        return outcome.exceeded or outcome.detail or outcome.status
    return f"{raised.types[0]}: {raised.message[:200]}" + (f" (line {raised.line})" if raised.line else "")

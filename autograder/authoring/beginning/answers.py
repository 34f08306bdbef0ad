"""What came back from a call that was tried: what its parts are called, and along which axes they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.authoring.beginning.signatures import Function
from autograder.authoring.draws import Drawn


def names_of(function: Function, kind: Any, plain: Any) -> list[str]:
    """Names for the parts that are numbers; none where what comes back is compared as it is."""
    if kind in ("a tensor", "a NumPy array", "a number"):
        return [function.name]
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
    for name, array in parts.items():
        axes = [names.get(size, f"axis{place}") for place, size in enumerate(array.shape)]
        square |= len(set(array.shape)) < array.ndim
        if name == function.name and len(set(function.axes)) == array.ndim:
            axes = list(function.axes)
        found[name] = " ".join(axis if axes.count(axis) == 1 else f"{axis}{place}" for place, axis in enumerate(axes))
    return (found[function.name] if list(found) == [function.name] else found), square

"""Functions that a case states, and stand-ins: put where student code looks for a function, and taken away again.

Only the standard library: this runs beside student code. torch and NumPy are looked up, never imported.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import (
    CellType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

CURVES = ("sin", "cos", "tan", "exp", "log", "sqrt")


@contextlib.contextmanager
def standing_in(modules: Sequence[ModuleType], stand_ins: Mapping[str, Any]) -> Iterator[None]:
    """Put stand-ins where student code looks: into the submission, which comes first, and where others have the name.

    Also those that the submission lacks: it is not to blame for them. And where the submission has bound a function
    under another name before, as an alias, a default, a part of a functools.partial, in a table, or in an object or a
    class of its own: it means the same one.
    """
    nothing = object()
    places = [(one, name) for one in modules for name in stand_ins if one is modules[0] or hasattr(one, name)]
    before = [(module, name, getattr(module, name, nothing)) for module, name in places]
    meant = {id(value): stand_ins[name] for _, name, value in before if callable(value)}
    bound = _bound_early(modules[0], meant, stand_ins)
    try:
        for module, name in places:
            setattr(module, name, stand_ins[name])
        for put, instead, _ in bound:
            put(instead)
        yield
    finally:
        for put, _, value in bound:
            put(value)
        for module, name, value in before:
            if value is nothing:
                vars(module).pop(name, None)
            else:
                setattr(module, name, value)


Bound = tuple[Callable[[Any], None], Any, Any]  # what puts a value into its place, the one to put there, the one before
MOST_ENTRIES = 1_000  # of a table that is looked through


def _bound_early(module: ModuleType, meant: Mapping[int, Any], names: Container[str]) -> list[Bound]:
    """Where else in a module the functions stand that are meant, by identity: all but its names that are replaced."""
    found: list[Bound] = []
    entered = {id(vars(module))}

    def look(value: Any, put: Callable[[Any], None] | None) -> None:
        instead = _in_place_of(value, meant)
        if instead is not value and put is not None:
            found.append((put, instead, value))
        if id(value) not in entered:
            entered.add(id(value))
            for one, put_there in _places_in(value, module.__name__):
                look(one, put_there)

    for name, value in list(vars(module).items()):
        if name not in names and not name.startswith("__"):
            look(value, functools.partial(setattr, module, name))
    for function in _functions(module):
        for kind in ("__defaults__", "__kwdefaults__"):
            look(getattr(function, kind), functools.partial(setattr, function, kind))
        for cell in _filled_cells(function):
            look(cell.cell_contents, functools.partial(setattr, cell, "cell_contents"))
    return found


def _in_place_of(value: Any, meant: Mapping[int, Any]) -> Any:
    """The value with stand-ins in it; itself where there is none to put, or it is one that can be written into."""
    if id(value) in meant:
        return meant[id(value)]
    if type(value) in (staticmethod, classmethod):
        inner = _in_place_of(value.__func__, meant)
        return value if inner is value.__func__ else type(value)(inner)
    if type(value) is functools.partial:
        function, placed = _in_place_of(value.func, meant), _in_place_of(value.args, meant)
        named = {key: _in_place_of(one, meant) for key, one in value.keywords.items()}
        same = function is value.func and placed is value.args and _same(named, value.keywords)
        return value if same else functools.partial(function, *placed, **named)
    if type(value) is MappingProxyType:
        named = {key: _in_place_of(one, meant) for key, one in value.items()}
        return value if _same(named, value) else MappingProxyType(named)
    if isinstance(value, tuple) and (type(value) is tuple or hasattr(type(value), "_make")):
        make: Any = tuple if type(value) is tuple else getattr(type(value), "_make")  # noqa: B009 (a named tuple's)
        row = [_in_place_of(one, meant) for one in value]
        same = all(one is other for one, other in zip(row, value, strict=True))
        return value if same else make(row)
    return value


def _same(entries: Mapping[Any, Any], others: Mapping[Any, Any]) -> bool:
    """Whether two tables of the same keys hold the same objects."""
    return all(entries[key] is one for key, one in others.items())


def _places_in(value: Any, own: str) -> Iterator[tuple[Any, Callable[[Any], None] | None]]:
    """What stands in a table, an object or a class of the submission, and what puts another into its place.

    own   the name of the submission's module
    """
    if isinstance(value, list | dict) and len(value) <= MOST_ENTRIES:
        write: Callable[..., None] = list.__setitem__ if isinstance(value, list) else dict.__setitem__
        for key, one in list(enumerate(value) if isinstance(value, list) else dict.items(value)):
            yield one, functools.partial(write, value, key)
    elif isinstance(value, tuple | MappingProxyType | functools.partial | MethodType):
        for one in _held(value):
            yield one, None
    elif isinstance(value, type):
        for name, one in list(vars(value).items()) if value.__module__ == own else ():
            if not name.startswith("__"):
                yield one, functools.partial(setattr, value, name)
    elif type(value) is SimpleNamespace or type(value).__module__ == own:
        for name, one in _attributes(value):
            yield one, functools.partial(object.__setattr__, value, name)


def _held(value: Any) -> Iterable[Any]:
    """What stands in something that is made anew where a part of it is replaced."""
    if isinstance(value, tuple | MappingProxyType):
        held = value if isinstance(value, tuple) else value.values()
        return held if len(value) <= MOST_ENTRIES else ()
    return (value.args, value.keywords) if isinstance(value, functools.partial) else (value.__self__,)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """What an object holds, by name, in its dictionary and in its slots."""
    found: dict[str, Any] = {}
    slots = [one for kind in type(value).__mro__ for one in vars(kind).values() if type(one) is MemberDescriptorType]
    for slot in slots:
        with contextlib.suppress(AttributeError):  # an empty one
            found[slot.__name__] = slot.__get__(value)
    with contextlib.suppress(AttributeError):  # of slots alone
        found |= object.__getattribute__(value, "__dict__")
    return list(found.items())


def _functions(module: ModuleType) -> list[FunctionType]:
    """The module's own functions: of its names, of its classes, and those that one of them holds on to."""
    found: dict[int, FunctionType] = {}
    waiting = list(vars(module).values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, type) and one.__module__ == module.__name__:
            waiting += vars(one).values()
        one = getattr(one, "__func__", one) if isinstance(one, staticmethod | classmethod) else one
        if isinstance(one, FunctionType) and one.__globals__ is vars(module) and id(one) not in found:
            found[id(one)] = one
            waiting += [cell.cell_contents for cell in _filled_cells(one)]
    return list(found.values())


def _filled_cells(function: FunctionType) -> list[CellType]:
    def is_filled(cell: CellType) -> bool:
        try:
            return cell.cell_contents is not cell
        except ValueError:
            return False

    return [cell for cell in function.__closure__ or () if is_filled(cell)]


class Formula:
    """A function of numbers, arrays or tensors that a case states as an expression, with what it was called with."""

    def __init__(self, entry: Mapping[str, str]) -> None:
        """Compile the expression, which is the author's own."""
        self._names = entry["of"].split()
        self._code = compile(entry["is"], "formula", "eval")
        self.calls: list[list[float]] = []
        self.__name__ = self.__qualname__ = "function"  # as a student who prints it sees any other

    def __call__(self, *placed: Any, **named: Any) -> Any:
        """The value of the expression; the arguments, by place or by name, are kept where they are numbers."""
        rest = self._names[len(placed) :]
        if len(placed) > len(self._names) or {*rest} != {*named}:
            given = len(placed) + len(named)
            raise TypeError(
                f"the function takes {len(self._names)} arguments, {', '.join(self._names)}; it got {given}"
            )
        arguments = [*placed, *(named[name] for name in rest)]
        if all(isinstance(one, int | float) for one in arguments):
            self.calls.append([float(one) for one in arguments])
        known = {name: functools.partial(_of_one, name) for name in CURVES} | {"pi": math.pi, "e": math.e}
        return eval(self._code, {"__builtins__": {}}, known | dict(zip(self._names, arguments, strict=True)))


def _of_one(name: str, one: Any) -> Any:
    """That function of a number, or of each number of an array or a tensor."""
    library = type(one).__module__.partition(".")[0]
    is_many = library == "torch" or (library == "numpy" and bool(getattr(one, "ndim", 0)))
    return getattr(sys.modules[library] if is_many else math, name)(one)

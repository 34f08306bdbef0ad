"""The probe that most cases need: it calls one function as a case describes, and says what came back.

An assignment's `probes.py` takes it over in one line, and adds what is its own:

    from autograder.sandbox.worker.calling import call

    probe(student, inputs, params) -> (returned, facts)

Only the standard library, and of what the worker has imported the part that the values are of: this runs beside student
code and judges nothing. torch and NumPy are looked up, never imported: arrays, lists and numbers need no torch.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import json
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


def called(
    function: Any, named: Mapping[str, Any], params: Mapping[str, Any], more: Sequence[str] = (), *, in_place: bool
) -> Any:
    """What the function returns of the arguments that the case lists; `more` are others, which are passed by name.

    in_place   whether what the function has no such name for is passed in its place, and so is all before it

    Where params["bound"], all is passed by name, as far as the function has the names: another order is not felt.
    """
    listed, bound = (*params["arguments"], *more), params.get("bound", False)
    by_name = {*(listed if bound else params.get("by_name", ())), *more}
    if (in_place or bound) and (
        unknown := [name for name in listed if name in by_name and names_refused(function, [name])]
    ):
        by_name -= {*listed[: listed.index(unknown[-1])], *unknown}
    in_order = [named[name] for name in listed if name not in by_name]
    return function(*in_order, **{name: named[name] for name in listed if name in by_name})


def call_by_name(
    student: ModuleType, inputs: Mapping[str, Any], params: Mapping[str, Any], own: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A probe: call one function with every argument by name. Fact "names": why its signature refuses that, or None.

    params   `function`, `arguments` and `given`, as the probe of `calling` has them; inputs are passed as they are
    own      {name: object}: what the assignment's own code makes for arguments
    """
    listed = {**inputs, **copy.deepcopy(dict(params.get("given", {}))), **(own or {})}
    named = {name: listed[name] for name in params["arguments"]}
    return {}, {"names": unanswered(getattr(student, params["function"]), named)}


def unanswered(function: Any, named: Mapping[str, Any]) -> str | None:
    """Why a call with these names gives no answer, as the end of a sentence; None where it gives one.

    Raises what the function raises: it has then not shown that it takes them.
    """
    return names_refused(function, list(named)) or nothing(lambda: function(**named))


def nothing(call: Callable[[], Any]) -> str | None:
    """The end of a sentence on a call by name that returns nothing; None where it returns something."""
    return "returns nothing where it is called by name" if call() is None else None


def names_refused(function: Any, names: Sequence[str]) -> str | None:
    """Why these names cannot be passed to a function, as the end of a sentence; None where its signature takes them."""
    try:
        kinds = {name: one.kind for name, one in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):  # it has no signature that can be read
        return None
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return None
    if missing := [name for name in names if name not in kinds]:
        return f"has no parameter{'s' * (len(missing) > 1)} called {_listed(missing)}"
    placed = [name for name in names if kinds[name] is inspect.Parameter.POSITIONAL_ONLY]
    return f"takes {_listed(placed)} by place alone" if placed else None


def _listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


TORCH, NUMPY, PYTHON = "torch", "numpy", "python"  # what the values of a case are; the first two are modules
MAX_TRACE = 1_000
MAX_PARTS = 40
MAX_RESULT = 20_000  # characters of text, lists and dictionaries that are compared as they are
Named = Mapping[str, Any]
KINDS = {str: "text", bool: "a truth value", list: "a list", dict: "a dictionary", type(None): "nothing"}


def call(
    student: ModuleType,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    own: Mapping[str, Any] | None = None,
    *,
    in_place: bool = False,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Call one function, and say what came back.

    params["function"]    its name
    params["arguments"]   names, in order: each one of the inputs, of the formulas, else an entry of params["given"]
    params["by_name"]     those of them that are passed by name
    params["bound"]       whether all are, as far as the function has the names
    params["also"]        {label: {"without": …, "bound": …, "sliced": …, "graphs": …}}: further calls with the same
                          numbers, passed like this; what they return is "<part> <label>". Where the first call raises,
                          nothing is
    params["given"]       {argument: number, text, list, …}
    params["values"]      "torch", "numpy" or "python": what the inputs are, and what is to come back. They travel as
                          tensors for the first, as arrays for the others
    params["returns"]     names for what it returns: one, or one for each part of a tuple or key of a dictionary
    params["exact"]       whether tensors alone will do: a number is none then, and of more than one number there are no
                          gradients unless it is weighted
    params["plain"]       whether it is compared as it is (text, truth values, lists of them): fact "result"
    params["leaves"]      tensors that require a gradient: that of the first part's sum, as "gradient <name>"
    params["gradients_of"]   the parts whose sum, of all of them, it is instead
    params["upstream"]    the input that weights this sum
    params["constants"]   tensors that require a gradient and should get none: fact "pull of <name>", its greatest size
    params["aliases"]     {argument: {"of": name}}: the same object; with "times" and "plus", a times it plus b
    params["graphs"]      {input: name}: the same numbers, which carry the graph of the other
    params["transposed"]  inputs whose last two axes are exchanged in memory: the same numbers, not contiguous
    params["sliced"]      inputs that are every second entry of a larger array along the first axis
    params["formulas"]    {argument: {"of": "x", "is": "x * x - 2"}}: a function, whose calls are counted and traced
    params["stand_ins"]   {name in the student's module: formula}: what the function calls in place of its own
    params["recording"]   False where the caller records no gradients: what comes back must do without a graph
    params["raises"]      {fact: {argument: value}}: further calls with these arguments instead, which should raise;
                          {"of": name} is another argument, input or object, {"of": "x", "is": "1 / 0"} a formula.
                          What is no argument is passed by name
    params["results"]     whether leaves and constants come as results of tensors that require a gradient
    own                   {name: object}: what the assignment's own code makes for arguments and for `raises`
    in_place              whether what the function has no such name for is passed in its place: names are judged apart

    Returned are the parts, the gradients, the inputs after the call ("<name> afterwards") and each formula's arguments
    ("calls of <name>"). Facts: "kind" of what came back, "graph" (whether a tensor carries one), "calls of <name>",
    "pull of <name>", and of each of `raises` what it raised.
    """
    if "also" in params:
        return _also(student, inputs, params, own)
    function = getattr(student, params["function"])
    values = params.get("values", TORCH)
    formulas = {name: Formula(entry) for name, entry in params.get("formulas", {}).items()}
    named = {**_inputs(inputs, params), **copy.deepcopy(dict(params.get("given", {}))), **formulas, **(own or {})}
    differentiable = (*params.get("leaves", ()), *params.get("constants", ()))
    leaves = {name: named[name].requires_grad_() for name in differentiable}
    if params.get("results"):  # tensors that were computed, as a model's are: one may write into them
        named |= {name: leaf.clone() for name, leaf in leaves.items()}
    named |= _derived(named, params)
    tracked = [name for name in params["arguments"] if _requires_grad(named[name])]
    with_stand_ins = {name: Formula(entry) for name, entry in params.get("stand_ins", {}).items()}
    facts: dict[str, Any] = {}
    returned: dict[str, Any] = {}
    found, error, given, more = None, None, {**named}, list[str]()
    for fact, replaced in {"": {}, **params.get("raises", {})}.items():  # all from one line: the stack tells none apart
        given = {**named} | {name: _instead(one, named, values, name in inputs) for name, one in replaced.items()}
        more = [name for name in replaced if name not in params["arguments"]]
        with standing_in([student], with_stand_ins), _recording(params.get("recording", True)):
            found, error = attempt(functools.partial(called, function, given, params, more, in_place=in_place))
        if fact:
            facts[fact] = described(error)
        elif error is not None:
            raise error
        else:
            returned, facts = _seen(found, inputs, named, params, leaves, {**formulas, **with_stand_ins})
    facts["tracked"] = [name for name in params["arguments"] if _requires_grad(named[name]) != (name in tracked)]
    held = {name: named[name] for name, one in params.get("given", {}).items() if isinstance(one, list | dict)}
    return returned, facts | {f"{name} afterwards": _plain(one) for name, one in held.items()}


def _also(
    student: ModuleType, inputs: Mapping[str, Any], params: Mapping[str, Any], own: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a call as it is, then in each other way that the case lists: parts, gradients and results of all of them.

    Where it answers otherwise when it is made again, every way has the first answer: which way it is made is not the
    fault then.
    """
    names = [*params["returns"], *(f"gradient {name}" for name in params.get("leaves", ()))]

    def answer(entry: Mapping[str, Any]) -> dict[str, Any]:
        left = [name for name in params["arguments"] if name not in entry.get("without", ())]
        changed = {key: one for key, one in {**params, **entry, "arguments": left}.items() if key != "also"}
        parts, seen = call(student, {name: _copied(one) for name, one in inputs.items()}, changed, own)
        parts = {name: parts[name] for name in names}
        kept = {name: _copied(one) if hasattr(one, "dtype") else one for name, one in parts.items()}
        return kept | {name: seen[name] for name in ("result",) if name in seen}

    (first, error), *several, (last, error_again) = (
        attempt(functools.partial(answer, entry)) for entry in ({}, *params["also"].values(), {})
    )
    if error is not None:
        raise error
    if error_again or any(_text(last[name]) != _text(first[name]) for name in first):
        several = [(first, None)] * len(several)
    for _, raised in several:
        if raised is not None:
            raise raised
    found = {"": first} | {f" {label}": one for label, (one, _) in zip(params["also"], several, strict=True)}
    returned = {f"{name}{label}": one[name] for label, one in found.items() for name in names}
    return returned, {f"result{label}": one["result"] for label, one in found.items() if "result" in one}


def _text(one: Any) -> str:
    """An answer as text, in which two that are no numbers are equal; "" where it cannot be read."""
    return repr(attempt(one.tolist)[0] if hasattr(one, "tolist") else one)


def _copied(one: Any) -> Any:
    return one.clone() if _is_tensor(one) else copy.deepcopy(one)


def _requires_grad(found: object) -> bool:
    return _is_tensor(found) and bool(found.requires_grad)  # type: ignore[attr-defined]


def _recording(records: bool) -> contextlib.AbstractContextManager[Any]:
    """The caller's own torch.no_grad() where it records no gradients."""
    return contextlib.nullcontext() if records else sys.modules[TORCH].no_grad()


def _seen(
    found: Any, inputs: Named, named: Named, params: Named, leaves: Named, formulas: Mapping[str, Formula]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is returned and noted of a call that gave an answer."""
    values = params.get("values", TORCH)
    facts: dict[str, Any] = {"kind": kind_of(found), "graph": found.requires_grad if _is_tensor(found) else None}
    returned: dict[str, Any] = {}
    if params.get("plain"):
        facts |= {"result": _plain(found), "parts": _parts_in(found)}
    elif params["returns"]:
        exact = params.get("exact", False)
        parts = parts_of(found, params["returns"], values, exact=exact, beside=inputs.values())
        upstream = inputs[params["upstream"]] if "upstream" in params else None
        output = _together([parts[name] for name in params.get("gradients_of", [*parts][:1])])
        constants = params.get("constants", ())
        slopes = gradients(output, leaves, upstream, exact=exact)
        facts |= {f"pull of {name}": size_of(slopes.pop(f"gradient {name}"), of_nothing=0.0) for name in constants}
        returned |= parts | slopes
    for name, formula in formulas.items():
        facts[f"calls of {name}"] = len(formula.calls)
        returned[f"calls of {name}"] = _numbers(formula.calls[:MAX_TRACE], values)
    returned |= {f"{name} afterwards": _afterwards(named[name], array, values) for name, array in inputs.items()}
    return returned, facts


def _inputs(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as the student's function gets them."""
    found, values = dict(inputs), params.get("values", TORCH)
    if params.get("bound"):  # what was received is a view, which cannot be detached in place
        found = {name: array if _requires_grad(array) else _copied(array) for name, array in found.items()}
    for name in params.get("transposed", ()):
        exchanged = found[name].swapaxes(-1, -2)
        copied = exchanged.contiguous() if values == TORCH else exchanged.copy()
        found[name] = _laid_out(copied.swapaxes(-1, -2), values)
    for name in params.get("sliced", ()):
        found[name] = _sliced(found[name], values)
    return {name: _given(array, values) for name, array in found.items()}


def _sliced(array: Any, values: str) -> Any:
    """The same numbers, not contiguous: every second entry of an array that holds each of them twice."""
    if not array.ndim or values == PYTHON:
        return array
    twice = array.repeat_interleave(2, 0) if values == TORCH else array.repeat(2, 0)
    return _laid_out(twice[::2], values)


def _laid_out(view: Any, values: str) -> Any:
    """The same numbers at the same distances in memory; a tensor of its own, which may be detached in place."""
    if values != TORCH:
        return view
    return sys.modules[TORCH].empty_strided(view.shape, view.stride(), dtype=view.dtype).copy_(view)


def again(
    student: ModuleType, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Call one function several times, with other numbers of the same sizes, and say what came back.

    params["calls"]   further calls after the one that `call` has parameters for: {argument: number, or {"input": name}}
                      replaced in each

    What the k-th call returns is called "<name> <k>". All are looked at after the last call. Each call gets arrays of
    its own: whether one writes into its arguments is other cases' business. Fact "random": the generators of random
    numbers that were used or seeded.
    """
    before = _random_states()
    function, values = getattr(student, params["function"]), params.get("values", TORCH)
    first = {**params.get("given", {}), **inputs}
    rounds = [first]
    for entry in params["calls"]:
        rounds.append(
            first | {name: inputs[one["input"]] if isinstance(one, dict) else one for name, one in entry.items()}
        )
    found = []
    for named in rounds:
        arrays = {name: _copied(named[name]) for name in params["arguments"]}
        found.append(
            called(
                function,
                {name: _given(one, values) if name in inputs else one for name, one in arrays.items()},
                params,
                in_place=True,
            )
        )
    returned: dict[str, Any] = {}
    facts: dict[str, Any] = {"random": [name for name, state in _random_states().items() if state != before.get(name)]}
    for number, answer in enumerate(found, start=1):
        if params.get("plain"):
            facts[f"result {number}"] = _plain(answer)
        parts = parts_of(
            answer, params["returns"], values, exact=params.get("exact", False), beside=rounds[number - 1].values()
        )
        returned |= {f"{name} {number}": part for name, part in parts.items()}
    return returned, facts


def _random_states() -> dict[str, Any]:
    """The state of the generators that runs draw from: NumPy's and torch's own."""
    numpy, torch = sys.modules.get(f"{NUMPY}.random"), sys.modules.get(TORCH)
    states: dict[str, Any] = {}
    if numpy is not None:
        kind, keys, *others = numpy.get_state()
        states["numpy.random"] = (kind, keys.tobytes(), *others)
    if torch is not None:
        states[TORCH] = bytes(torch.get_rng_state())
    return states


def _derived(named: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are made of others, graph and all."""
    found = {}
    for name, entry in params.get("aliases", {}).items():
        other = named[entry["of"]]
        found[name] = entry.get("times", 1.0) * other + entry["plus"] if "plus" in entry else other
    for name, leaf in params.get("graphs", {}).items():
        whole = named[leaf].sum()
        found[name] = named[name] + (whole - whole.detach()).to(named[name].dtype)
    return found


def kind_of(found: object) -> str:
    """What kind of thing it is, as a phrase in the words of an assignment in NumPy or plain Python."""
    if isinstance(found, tuple):
        return f"a tuple of {len(found)}"
    if plain := next((words for kind, words in KINDS.items() if isinstance(found, kind)), None):
        return plain
    if _is_number(found):
        return "a number"
    if _is_array(found):
        return "a NumPy array"
    return "a tensor" if _is_tensor(found) else f"a {type(found).__name__[:80]}"


def _parts_in(found: Any) -> list[str] | None:
    """Names for the parts of a tuple, list or dictionary of arrays or tensors; None of anything else."""
    named = found if isinstance(found, dict) else dict(enumerate(found)) if isinstance(found, tuple | list) else {}
    if not named or len(named) > MAX_PARTS or not all(_is_tensor(one) or _is_array(one) for one in named.values()):
        return None
    return [f"part{key + 1}" if isinstance(key, int) else str(key) for key in named]


def parts_of(
    found: Any, names: Sequence[str], values: str, *, exact: bool = False, beside: Iterable[Any] = ()
) -> dict[str, Any]:
    """What was returned, by name, as tensors or arrays, or where `exact` as it is; nothing of too many or few.

    A number becomes a tensor of the dtype of the first floating one `beside` it.
    """
    dtype = next((one.dtype for one in beside if _is_tensor(one) and one.is_floating_point()), None)

    def part(one: Any) -> Any:
        made = one if exact else _part(one, values)
        return made if made is one or dtype is None else made.to(dtype)

    if len(names) == 1:
        return {names[0]: part(found)}
    if isinstance(found, dict):
        return {name: part(found.get(name)) for name in names}
    if not isinstance(found, tuple | list) or len(found) != len(names):
        return dict.fromkeys(names)
    return {name: part(one) for name, one in zip(names, found, strict=True)}


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns, or what it raises."""
    try:
        return call(), None
    except Exception as error:
        return None, error


def error_of(function: Callable[[], Any]) -> dict[str, Any] | None:
    """What a call raised, as JSON; None where it raised nothing."""
    return described(attempt(function)[1])


def described(error: Exception | None) -> dict[str, Any] | None:
    """An exception as JSON: its type names and text."""
    if error is None:
        return None
    return {"types": [kind.__name__ for kind in type(error).__mro__], "message": str(error)[:500]}


def gradients(output: Any, leaves: Mapping[str, Any], upstream: Any = None, *, exact: bool = False) -> dict[str, Any]:
    """The gradient of the output's sum with respect to each leaf; None where no graph reaches it, or a freed one would.

    With `upstream` of the weighted sum, of an output of that shape, axes of size 1 aside. If `exact`, else of a number.
    """
    nothing = {f"gradient {name}": None for name in leaves}
    if not leaves or not _is_tensor(output) or not output.requires_grad:
        return nothing
    if exact and output.numel() != 1 if upstream is None else output.squeeze().shape != upstream.squeeze().shape:
        return nothing
    whole = output.sum() if upstream is None else output.reshape(upstream.shape)
    weights = None if upstream is None else upstream.to(output.dtype)
    try:
        found = sys.modules[TORCH].autograd.grad(whole, list(leaves.values()), weights, allow_unused=True)
    except RuntimeError:
        return nothing
    return {f"gradient {name}": array for name, array in zip(leaves, found, strict=True)}


def _together(several: Sequence[Any]) -> Any:
    """The sum of all that these tensors hold; None where one of them is none. One alone stays as it is."""
    if len(several) == 1 or not all(map(_is_tensor, several)):
        return several[0] if len(several) == 1 else None
    return sum(one.sum() for one in several if one.is_floating_point())


def size_of(found: Any, of_nothing: Any = "nothing") -> Any:
    """The absolute value of a number, or a tensor's greatest, as JSON to twelve decimals; of anything else its kind."""
    if not _is_tensor(found) and not _is_number(found):
        return of_nothing if found is None else kind_of(found)
    value = found.detach() if _is_tensor(found) else found
    size = float(value.abs().max()) if _is_tensor(value) and value.numel() != 1 else abs(float(value))
    return round(size, 12) if math.isfinite(size) else str(size)


def number_of(value: Any) -> Any:
    """A number as a tensor in float64: as_tensor alone would round a Python float to float32."""
    return (value.detach().double() if _is_tensor(value) else _numbers(value, TORCH)).reshape(())


def _is_tensor(found: object) -> bool:
    torch = sys.modules.get(TORCH)
    return torch is not None and isinstance(found, torch.Tensor)


def _is_array(found: object) -> bool:
    numpy = sys.modules.get(NUMPY)
    return numpy is not None and isinstance(found, numpy.ndarray | numpy.generic)


def _is_number(found: Any) -> bool:
    if _is_array(found):
        return bool(found.ndim == 0 and found.dtype.kind in "fiu")
    return isinstance(found, int | float) and not isinstance(found, bool)


def _given(array: Any, values: str) -> Any:
    """An input as the student's function gets it."""
    return array.tolist() if values == PYTHON else array


def _instead(entry: Any, named: Mapping[str, Any], values: str, is_input: bool) -> Any:
    """What stands for an argument in a call that should raise: for an input, a list is what inputs are."""
    if isinstance(entry, dict) and entry.keys() == {"of"} and entry["of"] in named:
        return named[entry["of"]]
    if isinstance(entry, dict) and entry.keys() == {"of", "is"}:
        return Formula(entry)
    return _given(_numbers(entry, values), values) if is_input and isinstance(entry, list) else entry


def _afterwards(given: Any, input: Any, values: str) -> Any:
    """An input after the call, of the dtype that it had; None where it can no longer be read."""
    if values == TORCH:
        return given.detach()
    try:
        return sys.modules[NUMPY].asarray(given, dtype=input.dtype)
    except (TypeError, ValueError, OverflowError):
        return None


def _part(part: Any, values: str) -> Any:
    """One part as a tensor or an array of numbers; as it is, where it can be made none."""
    if values == TORCH:
        is_plain = _is_number(part) and (not _is_array(part) or isinstance(part, float))  # np.float64 is a float
        return _numbers(part, values) if is_plain else part
    if part is None or _is_tensor(part):
        return part
    try:
        whole = values == NUMPY and isinstance(part, list | tuple)  # whole numbers are then at fault as a list alone
        return _numbers(sys.modules[NUMPY].array(part) if whole else part, values)
    except (TypeError, ValueError, OverflowError):
        return part


def _numbers(found: Any, values: str) -> Any:
    """Numbers as a tensor or an array: in float64, but for an array's own dtype, of which whole numbers are int64."""
    if values == TORCH:
        return sys.modules[TORCH].tensor(found, dtype=sys.modules[TORCH].float64)
    numpy = sys.modules[NUMPY]
    array = numpy.array(found, subok=False)
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        raise TypeError("not numbers")
    if not _is_array(found) or not array.ndim:
        return array.astype(numpy.float64)
    return array.astype(numpy.int64) if array.dtype.kind in "biu" else array


def _plain(found: Any) -> Any:
    """What was returned, if JSON knows it; else its kind. Tuples are lists, keys are text."""
    try:
        text = json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return kind_of(found)
    return json.loads(text) if len(text) <= MAX_RESULT else kind_of(found)

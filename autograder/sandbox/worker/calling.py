"""The probe that most cases need: it calls one function as a case describes, and says what came back.

An assignment's `probes.py` takes it over in one line, and adds what is its own:

    from autograder.sandbox.worker.calling import call

    probe(student, inputs, params) -> (returned, facts)

Beside it: `again` calls several times, `driver` makes a probe of a function that uses objects, and `standing_in` puts
other functions in the place of the student's. torch and NumPy are looked up, never imported: arrays, lists and numbers
need no torch. This runs beside student code and judges nothing.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import inspect
import itertools
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

TORCH, NUMPY, PYTHON = "torch", "numpy", "python"  # what the values of a case are; the first two are modules
CURVES = ("sin", "cos", "tan", "exp", "log", "sqrt")  # what formulas know
MAX_TRACE = 1_000
MAX_PARTS = 40
MAX_RESULT = 20_000  # characters of text, lists and dictionaries that are compared as they are
CACHED = type(functools.cache(len))  # of functions behind `functools.cache` or `lru_cache`
PYTHON_KEY = re.compile(r"[-\d('\"]|(?:None|True|False|inf|nan)$")  # how keys begin that are written as Python is
NOISE = 1e-3, 1e-6  # relative and absolute: above what cases allow, or it would hide that two ways differ
GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # flags of code
KINDS = {str: "text", bool: "a truth value", list: "a list", dict: "a dictionary", type(None): "nothing"}
Named = Mapping[str, Any]
Probed = tuple[dict[str, Any], dict[str, Any]]  # what came back, by name; facts


def call(
    student: ModuleType, inputs: Named, params: Named, own: Named | None = None, *, in_place: bool = False
) -> Probed:
    """Call one function, and say what came back.

    params["function"]    its name
    params["arguments"]   names, in order: each one of the inputs, of the formulas, else an entry of params["given"]
    params["by_name"]     those of them that are passed by name
    params["bound"]       whether all are, as far as the function has the names
    params["also"]        {label: {"without": …, "bound": …, "sliced": …, "graphs": …}}: further calls with the same
                          numbers, passed like this; what they return is "<part> <label>". Where the first call raises,
                          nothing is
    params["given"]       {argument: number, text, list, …}, as `keyed` writes them
    params["values"]      "torch", "numpy" or "python": what the inputs are, and what is to come back. They travel as
                          tensors for the first, as arrays for the others
    params["returns"]     names for what it returns: one, or one for each part of a tuple or key of a dictionary
    params["as_is"]       those of them that are compared as they are: facts of that name
    params["changes"]     arguments that it changes in place: "<name> afterwards" is then a part of what comes back
    params["exact"]       whether tensors alone will do: a number is none then, and of more than one number there are no
                          gradients
    params["plain"]       whether it is compared as it is (text, truth values, lists of them): fact "result"
    params["leaves"]      tensors that require a gradient: that of the first part's sum, as "gradient <name>"
    params["gradients_of"]   the parts whose sum, of all of them, it is instead
    params["constants"]   tensors that require a gradient and should get none: fact "pull of <name>", its greatest size
    params["aliases"]     {argument: {"of": name}}: the same object; with "plus", it plus a number
    params["graphs"]      {input: name}: the same numbers, which carry the graph of the other
    params["transposed"]  inputs whose last two axes are exchanged in memory: the same numbers, not contiguous
    params["sliced"]      inputs that are every second entry of a larger array along the first axis
    params["formulas"]    {argument: {"of": "x", "is": "x * x - 2"}}: a function, whose calls are counted and traced
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
        return _call_in_several_ways(student, inputs, params, own)
    function, values = getattr(student, params["function"]), params.get("values", TORCH)
    formulas = {name: Formula(entry) for name, entry in params.get("formulas", {}).items()}
    named = {**_inputs(inputs, params), **unkeyed(params.get("given", {})), **formulas, **(own or {})}
    differentiable = (*params.get("leaves", ()), *params.get("constants", ()))
    leaves = {name: named[name].requires_grad_() for name in differentiable}
    if params.get("results"):  # tensors that were computed, as a model's are: one may write into them
        named |= {name: leaf.clone() for name, leaf in leaves.items()}
    derived = {}
    for name, entry in params.get("aliases", {}).items():
        other = named[entry["of"]]
        derived[name] = other + entry["plus"] if "plus" in entry else other
    for name, leaf in params.get("graphs", {}).items():
        whole = named[leaf].sum()
        derived[name] = named[name] + (whole - whole.detach()).to(named[name].dtype)
    named |= derived
    tracked = [name for name in params["arguments"] if _requires_grad(named[name])]
    returned: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    answer, error, given, more = None, None, {**named}, list[str]()
    # All from one line and with the same local names: by the stack no call that should raise can be told from the first
    for fact, replaced in {"": {}, **params.get("raises", {})}.items():
        given = named | {
            name: _instead(entry, named, values, is_input=name in inputs) for name, entry in replaced.items()
        }
        more = [name for name in replaced if name not in params["arguments"]]
        without_graph = contextlib.nullcontext() if params.get("recording", True) else sys.modules[TORCH].no_grad()
        with without_graph:
            answer, error = attempt(functools.partial(called, function, given, params, more, in_place=in_place))
        if fact:
            facts[fact] = described(error)
        elif error is not None:
            raise error
        else:
            returned, facts = _seen(answer, inputs, named, params, leaves, formulas)
    facts["tracked"] = [name for name in params["arguments"] if _requires_grad(named[name]) != (name in tracked)]
    held = [name for name, value in params.get("given", {}).items() if isinstance(value, list | dict)]
    return returned, facts | {f"{name} afterwards": _plain(named[name]) for name in held}


def again(student: ModuleType, inputs: Named, params: Named) -> Probed:
    """Call one function several times, with other numbers of the same sizes, and say what came back.

    params["calls"]   further calls after the one that `call` has parameters for: {argument: number, or {"input": name}}
                      replaced in each

    What the k-th call returns is called "<name> <k>". All are looked at after the last call. Each call gets arrays of
    its own: whether one writes into its arguments is other cases' business. Fact "random": the generators of random
    numbers that were used or seeded.
    """
    before = _random_states()
    function, values = getattr(student, params["function"]), params.get("values", TORCH)
    formulas = {name: Formula(entry) for name, entry in params.get("formulas", {}).items()}
    first = {**unkeyed(params.get("given", {})), **formulas, **inputs}
    changed = [name for name in params.get("changes", ()) if name in params["arguments"]]
    rounds, afterwards = [first], []
    for entry in params["calls"]:
        others = {name: inputs[value["input"]] if name in inputs else unkeyed(value) for name, value in entry.items()}
        rounds.append(first | others)
    answers = []
    for named in rounds:
        given = {name: _copied(named[name]) for name in params["arguments"]}
        given |= {name: _given(value, values) for name, value in given.items() if name in inputs}
        afterwards.append(given)
        answers.append(called(function, given, params, in_place=True))
    returned: dict[str, Any] = {}
    facts: dict[str, Any] = {"random": [name for name, state in _random_states().items() if state != before.get(name)]}
    exact, as_is = params.get("exact", False), params.get("as_is", ())
    for number, (answer, named, given) in enumerate(zip(answers, rounds, afterwards, strict=True), start=1):
        parts = parts_of(answer, params["returns"], values, exact=exact, beside=named.values(), as_is=as_is)
        plain = {"result": answer} if params.get("plain") else {name: parts.pop(name) for name in as_is}
        parts |= {f"{name} afterwards": _part(given[name], values) for name in changed if name in inputs}
        plain |= {f"{name} afterwards": given[name] for name in changed if name not in inputs}
        returned |= {f"{name} {number}": part for name, part in parts.items()}
        facts |= {f"{name} {number}": _plain(part) for name, part in plain.items()}
    return returned, facts


def driver(drive: Callable[..., Any]) -> Callable[[ModuleType, Named, Named], Probed]:
    """Make a probe of a function that uses what the student wrote, and returns what is to be judged of it.

        @driver
        def Queue(student, items):
            queue = student.Queue()
            …

    It is called as the student's function would be: `drive(student, <arguments of the case>)`. Of one part it returns
    the value itself or {name: value}, as an oracle does.
    """

    @functools.wraps(drive)
    def probe(student: ModuleType, inputs: Named, params: Named) -> Probed:
        names, driven = params.get("returns", []), ModuleType(student.__name__)

        @functools.wraps(drive)
        def unnamed(*placed: Any, **named: Any) -> Any:
            answer = drive(*placed, **named)
            return answer[names[0]] if len(names) == 1 and type(answer) is dict and [*answer] == names else answer

        setattr(driven, params["function"], functools.partial(unnamed, student))
        return (again if "calls" in params else call)(driven, inputs, params)

    return probe


def _call_in_several_ways(student: ModuleType, inputs: Named, params: Named, own: Named | None) -> Probed:
    """Make a call as it is, then in each other way of params["also"]: parts, gradients and results of all of them.

    Where it answers otherwise when it is made again, every way has the first answer: which way it is made is not the
    fault then.
    """
    names = [name for name in params["returns"] if name not in params.get("as_is", ())]
    names += [*(f"gradient {name}" for name in params.get("leaves", ()))]
    names += [f"{name} afterwards" for name in params.get("changes", ()) if name in inputs]
    told = [*(["result"] if params.get("plain") else []), *params.get("as_is", ())]
    told += [f"{name} afterwards" for name in params.get("changes", ()) if name not in inputs]

    def answer(way: Named) -> dict[str, Any]:
        left = [name for name in params["arguments"] if name not in way.get("without", ())]
        changed = {key: value for key, value in {**params, **way, "arguments": left}.items() if key != "also"}
        parts, facts = call(student, {name: _copied(value) for name, value in inputs.items()}, changed, own)
        kept = {name: _copied(parts[name]) if hasattr(parts[name], "dtype") else parts[name] for name in names}
        return kept | {name: facts[name] for name in told if name in facts}

    ways = ({}, *params["also"].values(), {})
    (first, error), *several, (last, error_again) = (attempt(functools.partial(answer, way)) for way in ways)
    if error is not None:
        raise error
    if error_again or not all(_are_alike(last[name], first[name]) for name in first):
        several = [(first, None)] * len(several)
    for _, raised in several:
        if raised is not None:
            raise raised
    by_label = {"": first} | {f" {label}": parts for label, (parts, _) in zip(params["also"], several, strict=True)}
    returned = {f"{name}{label}": parts[name] for label, parts in by_label.items() for name in names}
    return returned, {
        f"{name}{label}": parts[name] for label, parts in by_label.items() for name in told if name in parts
    }


def _seen(
    answer: Any, inputs: Named, named: Named, params: Named, leaves: Named, formulas: Mapping[str, Formula]
) -> Probed:
    """Collect what is returned and noted of a call that gave an answer."""
    values = params.get("values", TORCH)
    facts: dict[str, Any] = {"kind": kind_of(answer), "graph": answer.requires_grad if _is_tensor(answer) else None}
    returned: dict[str, Any] = {}
    if params.get("plain"):
        facts |= {"result": _plain(answer), "parts": _parts_in(answer)}
    elif params["returns"]:
        exact = params.get("exact", False)
        parts = parts_of(
            answer, params["returns"], values, exact=exact, beside=inputs.values(), as_is=params.get("as_is", ())
        )
        facts |= {name: _plain(parts.pop(name)) for name in params.get("as_is", ())}
        several = [parts[name] for name in params.get("gradients_of", [*parts][:1])]
        output = several[0] if len(several) == 1 else None
        if len(several) > 1 and all(map(_is_tensor, several)):
            output = sum(part.sum() for part in several if part.is_floating_point())
        slopes = gradients(output, leaves, exact=exact)
        for name in params.get("constants", ()):
            facts[f"pull of {name}"] = size_of(slopes.pop(f"gradient {name}"), of_nothing=0.0)
        returned |= parts | slopes
    for name, formula in formulas.items():
        facts[f"calls of {name}"] = len(formula.calls)
        returned[f"calls of {name}"] = _numbers(formula.calls[:MAX_TRACE], values)
    for name, array in inputs.items():
        is_changed = name in params.get("changes", ())
        returned[f"{name} afterwards"] = (
            _part(named[name], values) if is_changed else _afterwards(named[name], array, values)
        )
    return returned, facts


# Arguments


def _inputs(inputs: Named, params: Named) -> dict[str, Any]:
    """Lay out the inputs as the student's function gets them."""
    arrays, values = dict(inputs), params.get("values", TORCH)
    for name in params.get("transposed", ()):
        exchanged = arrays[name].swapaxes(-1, -2)
        copied = exchanged.contiguous() if values == TORCH else exchanged.copy()
        arrays[name] = _laid_out(copied.swapaxes(-1, -2), values)
    for name in params.get("sliced", ()):
        if arrays[name].ndim and values != PYTHON:
            twice = arrays[name].repeat_interleave(2, 0) if values == TORCH else arrays[name].repeat(2, 0)
            arrays[name] = _laid_out(twice[::2], values)
    return {name: _given(array, values) for name, array in arrays.items()}


def _laid_out(view: Any, values: str) -> Any:
    """Copy a view with its distances in memory: a tensor of its own may be detached in place."""
    if values != TORCH:
        return view
    return sys.modules[TORCH].empty_strided(view.shape, view.stride(), dtype=view.dtype).copy_(view)


def _given(array: Any, values: str) -> Any:
    return array.tolist() if values == PYTHON else array


def _instead(entry: Any, named: Named, values: str, *, is_input: bool) -> Any:
    """Make what stands for an argument in a call that should raise; a list for an input becomes what inputs are."""
    if isinstance(entry, dict) and entry.keys() == {"of"} and entry["of"] in named:
        return named[entry["of"]]
    if isinstance(entry, dict) and entry.keys() == {"of", "is"}:
        return Formula(entry)
    return _given(_numbers(entry, values), values) if is_input and isinstance(entry, list) else entry


def _afterwards(given: Any, before: Any, values: str) -> Any:
    """Read an input after the call, in the dtype that it had; None where it can no longer be read."""
    if values == TORCH:
        return given.detach()
    try:
        return sys.modules[NUMPY].asarray(given, dtype=before.dtype)
    except (TypeError, ValueError, OverflowError):
        return None


def _random_states() -> dict[str, Any]:
    """Return the state of NumPy's and torch's own generators."""
    numpy, torch = sys.modules.get(f"{NUMPY}.random"), sys.modules.get(TORCH)
    states: dict[str, Any] = {}
    if numpy is not None:
        kind, keys, *others = numpy.get_state()
        states["numpy.random"] = (kind, keys.tobytes(), *others)
    if torch is not None:
        states[TORCH] = torch.get_rng_state().numpy().tobytes()
    return states


# Names of parameters


def called(function: Any, named: Named, params: Named, more: Sequence[str] = (), *, in_place: bool) -> Any:
    """Call the function with the arguments that the case lists; `more` are others, which are passed by name.

    in_place   whether what the function has no such name for is passed in its place, and so is all before it

    Where params["bound"], all is passed by name, as far as the function has the names: another order is not felt.
    """
    listed, bound = (*params["arguments"], *more), params.get("bound", False)
    by_name = {*(listed if bound else params.get("by_name", ())), *more}
    if by_name and (in_place or bound) and names_refused(function, [*by_name]):
        unknown = [name for name in listed if name in by_name and names_refused(function, [name])]
        by_name -= {*listed[: listed.index(unknown[-1])], *unknown}
    in_order = [named[name] for name in listed if name not in by_name]
    return function(*in_order, **{name: named[name] for name in listed if name in by_name})


def unanswered(function: Any, named: Named) -> str | None:
    """Say why a call with these names gives no answer, as the end of a sentence; None where it gives one.

    Raises what the function raises: it has then not shown that it takes them.
    """
    return names_refused(function, list(named)) or nothing(lambda: function(**named))


def nothing(call: Callable[[], Any]) -> str | None:
    """Say that a call by name returns nothing, as the end of a sentence; None where it returns something."""
    return "returns nothing where it is called by name" if call() is None else None


def names_refused(function: Any, names: Sequence[str]) -> str | None:
    """Say why a function takes no such names, as the end of a sentence; None where its signature has them."""
    if type(function) is FunctionType and not vars(function):  # to read its signature takes 0.1 ms
        code = function.__code__
        if {*names} <= {*code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]}:
            return None
    try:
        kinds = {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):  # it has no signature that can be read
        return None

    def listed(refused: Sequence[str]) -> str:
        quoted = [f"`{name}`" for name in refused]
        return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)

    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return None
    if missing := [name for name in names if name not in kinds]:
        return f"has no parameter{'s' * (len(missing) > 1)} called {listed(missing)}"
    placed = [name for name in names if kinds[name] is inspect.Parameter.POSITIONAL_ONLY]
    return f"takes {listed(placed)} by place alone" if placed else None


# Results


def kind_of(value: object) -> str:
    """Name its kind, in the words of an assignment in NumPy or plain Python."""
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if plain := next((words for kind, words in KINDS.items() if isinstance(value, kind)), None):
        return plain
    if _is_number(value):
        return "a number"
    if _is_array(value):
        return "a NumPy array"
    return "a tensor" if _is_tensor(value) else f"a {type(value).__name__[:80]}"


def _parts_in(answer: Any) -> list[str] | None:
    """Name the parts of a tuple, list or dictionary of arrays or tensors; None of anything else."""
    named = answer if isinstance(answer, dict) else dict(enumerate(answer)) if isinstance(answer, tuple | list) else {}
    if not 0 < len(named) <= MAX_PARTS or not all(_is_tensor(part) or _is_array(part) for part in named.values()):
        return None
    return [f"part{key + 1}" if isinstance(key, int) else str(key) for key in named]


def parts_of(
    answer: Any,
    names: Sequence[str],
    values: str,
    *,
    exact: bool = False,
    beside: Iterable[Any] = (),
    as_is: Collection[str] = (),
) -> dict[str, Any]:
    """Split what was returned by name, into tensors or arrays, or where `exact` as it is; nothing of too many or few.

    A number becomes a tensor of the dtype of the first floating one `beside` it.
    """
    dtype = next((array.dtype for array in beside if _is_tensor(array) and array.is_floating_point()), None)

    def part(name: str, value: Any) -> Any:
        made = value if exact or name in as_is else _part(value, values)
        return made if made is value or dtype is None else made.to(dtype)

    if len(names) <= 1:
        return {name: part(name, answer) for name in names}
    if isinstance(answer, dict):
        return {name: part(name, answer.get(name)) for name in names}
    if not isinstance(answer, tuple | list) or len(answer) != len(names):
        return dict.fromkeys(names)
    return {name: part(name, value) for name, value in zip(names, answer, strict=True)}


def _part(part: Any, values: str) -> Any:
    """Make a part a tensor or an array of numbers; as it is, where it can be made none."""
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


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return what a call returns, and what it raises."""
    try:
        return call(), None
    except Exception as error:
        return None, error


def described(error: Exception | None) -> dict[str, Any] | None:
    """Describe an exception as JSON: its type names and text; None of none."""
    if error is None:
        return None
    return {"types": [kind.__name__ for kind in type(error).__mro__], "message": str(error)[:500]}


def gradients(output: Any, leaves: Named, *, exact: bool = False) -> dict[str, Any]:
    """Return the gradient of the output's sum for each leaf; None where no graph reaches it, or a freed one would.

    If `exact`, of a number alone.
    """
    nothing = {f"gradient {name}": None for name in leaves}
    if not leaves or not _requires_grad(output) or (exact and output.numel() != 1):
        return nothing
    try:
        slopes = sys.modules[TORCH].autograd.grad(output.sum(), list(leaves.values()), allow_unused=True)
    except RuntimeError:
        return nothing
    return {f"gradient {name}": slope for name, slope in zip(leaves, slopes, strict=True)}


def size_of(value: Any, of_nothing: Any = "nothing") -> Any:
    """Round the absolute value of a number, or a tensor's greatest, to twelve decimals; of anything else its kind."""
    if not _is_tensor(value) and not _is_number(value):
        return of_nothing if value is None else kind_of(value)
    number = value.detach() if _is_tensor(value) else value
    size = float(number.abs().max()) if _is_tensor(number) and number.numel() != 1 else abs(float(number))
    return round(size, 12) if math.isfinite(size) else str(size)


def number_of(value: Any) -> Any:
    """Make a number a tensor in float64: as_tensor alone would round a Python float to float32."""
    return (value.detach().double() if _is_tensor(value) else _numbers(value, TORCH)).reshape(())


def _numbers(values: Any, kind: str) -> Any:
    """Make numbers a tensor or an array: in float64, but for an array's own dtype; whole numbers in it are int64."""
    if kind == TORCH:
        return sys.modules[TORCH].tensor(values, dtype=sys.modules[TORCH].float64)
    numpy = sys.modules[NUMPY]
    array = numpy.array(values, subok=False)
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        raise TypeError("not numbers")
    if not _is_array(values) or not array.ndim:
        return array.astype(numpy.float64)
    return array.astype(numpy.int64) if array.dtype.kind in "iu" else array


def _plain(value: Any) -> Any:
    """Return what JSON makes of it, or its kind. Tuples are lists."""
    try:
        text = json.dumps(keyed(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return kind_of(value)
    return json.loads(text) if len(text) <= MAX_RESULT else kind_of(value)


def keyed(value: Any) -> Any:
    """Write each key as text, for JSON: text as it is, unless it reads like Python; all else as Python writes it.

    Raises TypeError of a key that is neither text, a number, a truth value, None nor a tuple of these.
    """
    if isinstance(value, dict):
        return {_key(key): keyed(entry) for key, entry in value.items()}
    return [keyed(entry) for entry in value] if isinstance(value, list | tuple) else value


def _key(key: Any, *, inside: bool = False) -> str:
    if isinstance(key, str) and not (inside or PYTHON_KEY.match(key)):
        return key
    if isinstance(key, tuple):
        return f"({', '.join(_key(part, inside=True) for part in key)}{',' * (len(key) == 1)})"
    kinds: Sequence[Any] = (str, bool, int, float, type(None))
    for kind in kinds:
        if isinstance(key, kind):
            return str(kind.__repr__(key))
    raise TypeError(f"a key of type {type(key).__name__}")


def unkeyed(value: Any) -> Any:
    """Return a copy with the keys that `keyed` wrote as text."""
    if isinstance(value, dict):
        keys = {key: attempt(functools.partial(ast.literal_eval, key)) for key in value if PYTHON_KEY.match(key)}
        known = {key: made for key, (made, error) in keys.items() if error is None}
        return {known.get(key, key): unkeyed(entry) for key, entry in value.items()}
    return [unkeyed(entry) for entry in value] if isinstance(value, list) else copy.deepcopy(value)


def _are_alike(left: Any, right: Any) -> bool:
    """Whether two answers are the same but for noise, where two that are no numbers are equal, or cannot be read."""
    if not hasattr(left, "tolist") or type(left) is not type(right):
        return repr(left) == repr(right)

    def compare() -> bool:  # which raises for an array.array or a torch.Storage: neither has a shape
        library = sys.modules[TORCH if _is_tensor(left) else NUMPY]
        return left.shape == right.shape and bool(library.allclose(left, right, *NOISE, equal_nan=True))

    alike, error = attempt(compare)
    return error is not None or bool(alike)


def _copied(value: Any) -> Any:
    return value.clone() if _is_tensor(value) else copy.deepcopy(value)


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get(TORCH)
    return torch is not None and isinstance(value, torch.Tensor)


def _requires_grad(value: Any) -> bool:
    return _is_tensor(value) and bool(value.requires_grad)


def _is_array(value: object) -> bool:
    numpy = sys.modules.get(NUMPY)
    return numpy is not None and isinstance(value, numpy.ndarray | numpy.generic)


def _is_number(value: Any) -> bool:
    if _is_array(value):
        return bool(value.ndim == 0 and value.dtype.kind in "fiu")
    return isinstance(value, int | float) and not isinstance(value, bool)


# Stand-ins


def answering(student: ModuleType, params: Named) -> contextlib.AbstractContextManager[None]:
    """Let the student's other functions answer as params["answered"] says, so that a mistake in one costs once.

    params["answered"]   [name, arguments, right result], …: of other arguments, or where a gradient is wanted, the
                         student's own function is asked. No code enters the sandbox, and no value that a case expects
    """
    if not params.get("answered"):  # nearly always: to put nothing in place takes 30 us
        return contextlib.nullcontext()
    own, known = vars(student), params["answered"]
    names = {name for name, *_ in known if callable(own.get(name))}
    rows = {name: [row[1:] for row in known if row[0] == name] for name in names}
    return standing_in([student], {name: _answer_of(own[name], rows[name]) for name in names})


def _answer_of(own: Callable[..., Any], known: Sequence[Sequence[Any]]) -> Callable[..., Any]:
    """Return a function that has the right result of known arguments, and asks the student's own about any others."""

    def answer(*placed: Any, **named: Any) -> Any:
        with contextlib.suppress(TypeError, ValueError):  # its signature does not take them, or cannot be read
            bound = inspect.signature(own).bind(*placed, **named)
            given = [*bound.args, *bound.kwargs.values()]
            for arguments, result in known:
                if len(given) == len(arguments) and all(map(_is_known, given, arguments)):
                    numbers = _numbers(result, TORCH)
                    is_truth = sys.modules[NUMPY].asarray(result).dtype.kind == "b"
                    return numbers.bool() if is_truth else numbers.to(given[0].dtype)
        return own(*placed, **named)

    return answer


def _is_known(given: Any, known: Any) -> bool:
    if not isinstance(known, list):
        return isinstance(given, int | float | str) and given == known
    is_plain = _is_tensor(given) and given.is_floating_point() and not given.requires_grad
    return is_plain and _are_alike(given.double(), _numbers(known, TORCH))


class Formula:
    """A function of numbers, arrays or tensors that a case states as an expression, with what it was called with."""

    def __init__(self, entry: Mapping[str, str]) -> None:
        """Compile the expression, which is the author's own."""
        self._names = entry["of"].split()
        self._code = compile(entry["is"], "formula", "eval")
        self.calls: list[list[float]] = []
        self.__name__ = self.__qualname__ = "function"  # as a student who prints it sees any other

    def __call__(self, *placed: Any, **named: Any) -> Any:
        """Evaluate the expression; the arguments, by place or by name, are kept where they are numbers."""
        rest = self._names[len(placed) :]
        if len(placed) > len(self._names) or {*rest} != {*named}:
            takes, got = f"{len(self._names)} arguments, {', '.join(self._names)}", len(placed) + len(named)
            raise TypeError(f"the function takes {takes}; it got {got}")
        arguments = [*placed, *(named[name] for name in rest)]
        if all(isinstance(value, int | float) for value in arguments):
            self.calls.append([float(value) for value in arguments])
        known = {name: functools.partial(_of_each, name) for name in CURVES} | {"pi": math.pi, "e": math.e}
        return eval(self._code, {"__builtins__": {}}, known | dict(zip(self._names, arguments, strict=True)))


def _of_each(name: str, value: Any) -> Any:
    """That function of a number, or of each number of an array or a tensor."""
    library = type(value).__module__.partition(".")[0]
    is_many = library == TORCH or (library == NUMPY and bool(getattr(value, "ndim", 0)))
    return getattr(sys.modules[library] if is_many else math, name)(value)


@contextlib.contextmanager
def standing_in(modules: Sequence[ModuleType], stand_ins: Named) -> Iterator[None]:
    """Put stand-ins where student code looks: into the submission, which comes first, and where others have the name.

    Also those that the submission lacks: it is not to blame for them. What these modules define may have been bound
    before, as a default, in a table, by another name. So it stays where it is, and its code, its making or its call
    leads to the stand-in. Anything else (a function of a library, one that serves for two names) is replaced under each
    name that a module has for it. What a stand-in itself calls is the real function.
    """
    student, homes = modules[0], {module.__name__ for module in modules}
    running = threading.local()  # in each thread: whether a stand-in runs, whose own calls are not replaced
    names: dict[int, set[str]] = {}  # what is to be replaced → the names that it stands in for
    for name, module in itertools.product(stand_ins, modules):
        if name in vars(module):
            names.setdefault(id(vars(module)[name]), set()).add(name)
    with contextlib.ExitStack() as undo:
        redirected: list[Any] = []
        for (name, stand_in), module in itertools.product(stand_ins.items(), modules):
            value = vars(module).get(name)
            if any(value is function for function in redirected) or (value is None and module is not student):
                continue
            is_alone = getattr(value, "__module__", "") in homes and names[id(value)] == {name}
            if is_alone and isinstance(value, FunctionType) and not value.__code__.co_flags & GENERATOR:
                _redirect_function(value, stand_in, running, undo)
                redirected.append(value)
                continue
            if is_alone and isinstance(value, type):
                _redirect_class(value, stand_in, undo)
            elif names.get(id(value)) == {name}:
                _redirect_object(value, stand_in, homes, running, undo)
            others = [key for key, held in vars(student).items() if held is value and callable(value)]
            for place, key in ((vars(module), name), *((vars(student), key) for key in others if key not in stand_ins)):
                undo.callback(*((place.__setitem__, key, place[key]) if key in place else (place.pop, key, None)))
                place[key] = stand_in
        yield


def _forward(*arguments: Any, _instead_: Callable[..., Any], **named: Any) -> Any:
    return _instead_(*arguments, **named)


def _unless_running(stand_in: Any, real: Any, running: threading.local) -> Callable[..., Any]:
    """Return a function that calls the stand-in, or the real one where a stand-in runs."""

    def instead(*arguments: Any, **named: Any) -> Any:
        if getattr(running, "stand_in", False):
            return real(*arguments, **named)
        running.stand_in = True
        try:
            return stand_in(*arguments, **named)
        finally:
            running.stand_in = False

    return instead


def _redirect_function(
    function: FunctionType, stand_in: Any, running: threading.local, undo: contextlib.ExitStack
) -> None:
    """Let whoever holds this function, under whatever name, call the stand-in, by another code object in it."""
    real = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    real.__kwdefaults__ = function.__kwdefaults__
    for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
        undo.callback(setattr, function, attribute, getattr(function, attribute))
    function.__code__ = _forward.__code__.replace(co_freevars=real.__code__.co_freevars)  # a closure keeps its cells
    function.__defaults__, function.__kwdefaults__ = None, {"_instead_": _unless_running(stand_in, real, running)}
    if "__wrapped__" not in vars(function):  # where `inspect.signature` looks for the parameters
        undo.callback(vars(function).pop, "__wrapped__", None)
        vars(function)["__wrapped__"] = real


def _redirect_object(
    value: Any, stand_in: Any, homes: Collection[str], running: threading.local, undo: contextlib.ExitStack
) -> None:
    """Let whoever holds this object call the stand-in: a partial, a cached function, what a class of `homes` makes."""
    kind: Any = type(value)
    if kind is functools.partial:
        function, placed, by_name, attributes = value.__reduce__()[2]
        real = functools.partial(function, *placed, **by_name)
        undo.callback(value.__setstate__, (function, placed, by_name, attributes))
        value.__setstate__((_unless_running(stand_in, real, running), (), {}, attributes))
    elif kind is CACHED and isinstance(value.__wrapped__, FunctionType) and value.__module__ in homes:
        _redirect_function(value.__wrapped__, stand_in, running, undo)
        value.cache_clear()
        undo.callback(value.cache_clear)
    elif kind.__module__ in homes and callable(value):
        usual = kind.__call__
        instead = _unless_running(stand_in, functools.partial(usual, value), running)
        put_back = (setattr, kind, "__call__", usual) if "__call__" in vars(kind) else (delattr, kind, "__call__")
        undo.callback(*put_back)
        kind.__call__ = lambda self, *arguments, **named: (
            instead(*arguments, **named) if self is value else usual(self, *arguments, **named)
        )


def _redirect_class(kind: type, stand_in: Any, undo: contextlib.ExitStack) -> None:
    """Let whoever holds this class make what the stand-in makes."""
    usual: Any = kind.__new__

    def make(made: type, *arguments: Any, **named: Any) -> Any:
        return usual(made) if usual is object.__new__ else usual(made, *arguments, **named)

    def instead(made: type, *arguments: Any, **named: Any) -> Any:
        if made is not kind:
            return make(made, *arguments, **named)
        if isinstance(stand_in, type) and issubclass(stand_in, kind):  # whose `__init__` is called with what is made
            return make(stand_in, *arguments, **named)
        return stand_in(*arguments, **named)

    make.__wrapped__ = instead.__wrapped__ = kind.__init__  # type: ignore[attr-defined, misc]  # for `inspect.signature`
    # Once a class had a `__new__` of its own, it can't do without: object's would then refuse arguments
    undo.callback(setattr, kind, "__new__", vars(kind).get("__new__", staticmethod(make)))
    kind.__new__ = staticmethod(instead)  # type: ignore[assignment]

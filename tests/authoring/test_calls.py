"""The engine's own probe, and cases as declarations: what a call of NumPy, plain Python or torch is held to."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from declared import Declared

from autograder.authoring.calls import Formula, as_python
from autograder.authoring.declarations import Draft, check_draft
from autograder.authoring.faults import Misnamed, Refusal
from autograder.authoring.laws.declaration import Error, Function
from autograder.authoring.laws.exam import Exam
from autograder.grading.compare import compare
from autograder.grading.fixtures import Case
from autograder.grading.wording import without_gradient
from autograder.sandbox.calls import Observation, Returned
from autograder.sandbox.worker import calling
from autograder.sandbox.worker.calling import unanswered
from autograder.vocabulary.errors import FixtureError


def module(source: str) -> ModuleType:
    made = ModuleType("made")
    exec(source, made.__dict__)
    return made


def array(*sizes: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, sizes)


def observed(draft: Draft, student: str) -> Observation:
    """What the probe sees of a student's text in this draft, as a worker would send it."""
    of_torch = draft.params["values"] == "torch"
    copies = {name: array.copy() for name, array in draft.inputs.items()}
    inputs = {name: torch.from_numpy(one) if of_torch else one for name, one in copies.items()}
    returned, facts = calling.call(module(f"import math, numpy as np\n{student}"), inputs, draft.params)
    return Observation({name: _returned(value) for name, value in returned.items()}, facts)


def _returned(value: Any) -> Returned:
    if not isinstance(value, torch.Tensor | np.ndarray):
        return Returned("none" if value is None else "other", type=type(value).__name__)
    attached = isinstance(value, torch.Tensor) and value.requires_grad
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    return Returned("tensor", "Tensor", array.dtype.name, array.shape, attached, array)


def verdict(draft: Draft, student: str) -> str:
    """ "" where the answer is right, else the rung and what it is about."""
    check_draft(draft)
    mismatch = compare(draft.answer(draft.inputs, draft.params), observed(draft, student))
    return "" if mismatch is None else f"{mismatch.rung} of {mismatch.expectation.name}"


# What an answer is held to

TABLE = Declared("def scaled(x, factor): return np.array([[factor * v for v in row] for row in x])", "numpy")
SCALED, ANY_KIND = (
    TABLE.case("scaled", {"x": array(2, 3), "factor": 1.75}, "row column", kind=kind) for kind in ("a NumPy array", "")
)
FIRST = Declared("def first(x): return x.argmax(axis=1)", "numpy").case(
    "first", {"x": array(2, 3)}, "row", kind="a NumPy array"
)
HALVING = """\
def root(f, low, high):
    while high - low > 0.25:
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return (low + high) / 2
"""
ROOT = Declared(HALVING, "python").case(
    "root", {"f": Formula("x", "x * x - 2"), "low": 0.0, "high": 2.0}, counted=["f"]
)
ENERGY = Declared("def energy(x): return np.array((x * x).sum())\ndef energy_gradient(x): return 2 * x").case(
    "energy", {"x": array(2, 3)}, leaves=["x"]
)
CENTRE = Declared("def centre(x): return x - x.mean()").case("centre", {"x": array(4)}, "entry", constant=True)
GAP = Declared("def gap(x, y): return np.array(((x - y) ** 2).sum())\ndef gap_gradient(x, y): return 2 * (x - y)").case(
    "gap", {"x": array(2, 3), "y": array(2, 3, seed=1)}, leaves=["x"], constants=["y"], by_name=["y"]
)
ABOVE = Declared("def above(x): return x > 0").case("above", {"x": 0.1 * array(3, 4)}, "row column")
BOTH_ORACLE = "def both(x, y): return x + y, x * y\ndef both_gradient(x, y): return 1 + y, 1 + x"
PARTS: Any = {"sum": "row", "product": "row"}
LEAVES = ["x", "y"]


def both(oracle: str = BOTH_ORACLE, **more: Any) -> Draft:
    return Declared(oracle).case("both", {"x": array(3), "y": array(3)}, PARTS, leaves=LEAVES, **more)


SUMMED = both(gradients_of=["sum", "product"])
OF_FIRST = both(BOTH_ORACLE.replace("1 + y, 1 + x", "1 + 0 * x, 1 + 0 * y"))
MASK_ORACLE = "def mask(n): return [[-math.inf if k > i else 0.0 for k in range(n + 1)] for i in range(n)]"
MASK = Declared(MASK_ORACLE, "numpy").case("mask", {"n": 3}, "query key", infinite="what is not seen weighs nothing")
BOUND = Declared("def bound(x): return np.append(x, np.inf)", "numpy").case(
    "bound", {"x": array(3)}, "place", infinite="the last bound"
)
FULL = "np.full((n, n + 1), {})"
DESCENT = Declared(
    "def descent(callback): return [callback(0, 0.5), callback(1, loss=0.25), callback(step=2, loss=0.125)]", "python"
).case("descent", {"callback": Formula("step loss", "step + 8 * loss")}, "step", counted=["callback"])

VERDICTS: list[tuple[Draft, str, dict[str, str]]] = [  # the call, the line of its def, what stands in the body → told
    (SCALED, "def scaled(x, factor): {}", {
        "return factor * x": "",
        "return x": "values of scaled",
        "return (factor * x).T": "shape of scaled",
        "return (factor * x).tolist()": "fact of kind",
        "return None": "returned of scaled",
        "x *= factor; return x.copy()": "purity of x afterwards",
        "return (factor * x).astype(np.float32)": "dtype of scaled",
    }),
    (ANY_KIND, "def scaled(x, factor): return {}", {
        "'many'": "tensor of scaled",
        "[[1.0], [2.0, 3.0]]": "tensor of scaled",
        "[[None] * 3] * 2": "tensor of scaled",
        "x.astype(str).tolist()": "tensor of scaled",
        "{1: x}": "tensor of scaled",
        "(x * factor).astype(object)": "dtype of scaled",
    }),
    (FIRST, "def first(x): return x.argmax(axis=1){}", {
        ".tolist()": "fact of kind",
        ".astype(float)": "dtype of first",
    }),
    (ROOT, "{}", {
        HALVING: "",
        HALVING.replace("    while", "    f(low)\n    while"): "fact of calls of f",
    }),
    (ENERGY, "def energy(x): return {}", {
        "(x * x).sum()": "",
        "(x * x).sum().detach()": "graph of energy",
        "(x * x.detach()).sum()": "gradient of gradient x",
    }),
    (CENTRE, "def centre(x): return {}", {
        "x - x.mean()": "",
        "(x - x.mean()).requires_grad_()": "graph of centre",
    }),
    (GAP, "def gap(x, {}) ** 2).sum()", {
        "*, y): return ((x - y.detach()": "",
        "y): return ((x - y": "fact of pull of y",
    }),
    (ABOVE, "def above(x): return {}", {
        "x > 0": "",
        "x > 0.1": "values of above",
        "(x > 0).double()": "dtype of above",
    }),
    (SUMMED, "def both(x, y): return {}", {
        "x + y, x * y": "",
        "[x + y, x * y]": "",
        "{'product': x * y, 'sum': x + y}": "",
        "x + y, (x * y).detach()": "graph of product",
        "(x + y).detach(), x * y": "graph of sum",
        "x + y, x.detach() * y": "gradient of gradient x",
        "x + y": "returned of sum",
    }),
    (OF_FIRST, "def both(x, y): return {}", {"x + y, (x * y).detach()": ""}),
    (MASK, "def mask(n):\n  with np.errstate(all='ignore'): return np.triu({})", {
        f"{FULL.format('-np.inf')}, 1": "",
        f"{FULL.format('np.inf')}, 1": "values of mask",
        f"{FULL.format('-1e300')}, 1": "values of mask",
        f"{FULL.format('np.nan')}, 1": "values of mask",
        f"{FULL.format('-np.inf')}, 0": "values of mask",
        f"{FULL.format('-np.inf')}, 1) + (1e-3": "values of mask",
    }),
    (BOUND, "def bound(x): return np.append(x + {}, np.inf)", {"0": "", "1e-3": "values of bound"}),
    (DESCENT, "def descent(call): return [call({}) for n, loss in enumerate((0.5, 0.25, 0.125))]", {
        "n, loss": "",
        "n, loss=loss": "",
        "loss=loss, step=n": "",
        "n + 0 * len(call.__name__), loss": "",
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("draft", "student", "told"),
    [
        pytest.param(draft, student.replace("{}", part), told, id=f"{draft.case}-{part[:40]}")
        for draft, student, bodies in VERDICTS
        for part, told in bodies.items()
    ],
)
def test_answer_is_held_to_what_the_declaration_says(draft: Draft, student: str, told: str) -> None:
    assert verdict(draft, student) == told


def test_expectations_have_axes_traces_and_a_tolerance_of_finite_values() -> None:
    calls = observed(ROOT, HALVING).returned["calls of f"].array
    assert calls is not None
    assert calls.tolist() == [[1.0], [1.5], [1.25]]
    (slope,) = (one for one in ENERGY.answer(ENERGY.inputs, ENERGY.params) if one.kind == "gradient")
    assert slope.axes == ("row", "column")
    (value, *_) = BOUND.answer(BOUND.inputs, BOUND.params)
    assert value.atol <= 2e-8


@pytest.mark.parametrize(
    ("kind", "returns", "told"),
    [
        ("a list", ["f"], "f should return one tensor, but a list came back."),
        ("nothing", ["f"], "f should return one tensor, but nothing came back."),
        ("a tuple of 2", ["f"], "f should return one tensor, but a tuple of 2 came back."),
        ("a tensor", ["f"], ""),
        ("a number", ["f"], ""),
        ("a list", ["a", "b"], ""),
        ("a tuple of 2", ["a", "b"], ""),
        ("a tuple of 3", ["a", "b"], "f should return 2 values (a, b), but a tuple of 3 came back."),
        ("a tensor", ["a", "b"], "f should return 2 values (a, b), but a tensor came back."),
    ],
)
def test_wrong_kind_is_not_told_as_a_cut_graph(kind: str, returns: list[str], told: str) -> None:
    draft = Declared("def f(x): return x\ndef f_gradient(x): return 1 + 0 * x").case(
        "f", {"x": array(3)}, "row", leaves=["x"]
    )
    params = {**draft.params, "returns": returns}
    expected = [e for e in draft.answer(draft.inputs, draft.params) if e.kind == "gradient"]
    case = Case("f", "f-gradient", "f", "…", "public", "call", params, draft.inputs, tuple(expected), {})
    mismatch = compare(expected, Observation({"gradient x": Returned("none")}, {"kind": kind}))
    assert mismatch is not None
    seen = without_gradient(case, mismatch, reveal=True).replace("the gradient with respect to x", "g")
    assert seen == (told and f"g does not exist: {told}")
    hidden = without_gradient(case, mismatch, reveal=False)
    assert (hidden == "") == (told == "")
    assert kind not in hidden.partition(", but ")[2]


# Declarations and oracles that could not grade


def answered(draft: Draft) -> object:
    return draft.answer(draft.inputs, draft.params)


def declared(**more: Any) -> Callable[[], Function]:
    return lambda: Function("scaled", {"x": "float[row]"}, "float[row]", {"row": (1, 2, 3)}, {}, **more)


NO_INFINITY = Declared(MASK_ORACLE, "numpy").case("mask", {"n": 3}, "query key")
NAN = Declared(MASK_ORACLE.replace("-math.inf", "math.nan"), "numpy").case("mask", {"n": 3}, "q k", infinite="…")
ONE_SLOPE = both(BOTH_ORACLE.replace("1 + y, 1 + x", "1 + y"))
LOST = Declared("", "numpy").case("lost", {"x": array(3)}, "entry")


@pytest.mark.parametrize(
    ("attempt", "kind", "told"),
    [
        (declared(leaves="x"), Misnamed, "leaves of scaled is 'x': a list: leaves=[\"x\"]."),
        (declared(options={"rtol": "1e-4"}), Misnamed, "rtol of scaled is '1e-4': a number that is not negative, such"),
        (declared(options={"atol": -1e-6}), Misnamed, "atol of scaled is -1e-06: a number that is not negative, such"),
        (declared(tolerances={"usual": {"atol": ""}}), Misnamed, "atol of scaled is '': a number"),
        (declared(options={"sampeld": "often"}), Misnamed, "scaled has the option 'sampeld': 'sampled' is there."),
        (declared(counted=["f"]), Misnamed, "counted of scaled names 'f': one of x."),
        (
            lambda: Exam.of(calling, declared(answered={"lost": list})()),
            Misnamed,
            "answered of scaled names 'lost'",
        ),
        (lambda: Error({"x": 0}, "zero"), Misnamed, "mentions is 'zero': a list: mentions=[\"zero\"]"),
        (
            lambda: answered(LOST),
            FixtureError,
            "oracle.py does not define lost, and NOT_INDEPENDENT does not list lost",
        ),
        (lambda: answered(ONE_SLOPE), Misnamed, "the oracle both_gradient returns 1, and leaves are x, y: a tuple of"),
        (lambda: check_draft(NO_INFINITY), Refusal, "mask: the expected mask is infinite somewhere: other numbers, or"),
        (lambda: check_draft(NAN), Refusal, "mask: the expected mask is nan somewhere, which no answer equals: nan is"),
    ],
)
def test_what_could_not_grade_is_refused(attempt: Callable[[], object], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(told)}"):
        attempt()


# What the probe sees


def seen(student: str, inputs: dict[str, Any], own: Any = None, **params: Any) -> tuple[Any, Any]:
    """What the engine's own probe sees of `f`, whose one result is called y."""
    return calling.call(module(student), inputs, {"function": "f", "returns": ["y"], **params}, own)


X = [[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0]]


@pytest.mark.parametrize("answer", ["array.array('d', [1])", "torch.ones(1).untyped_storage()"])
def test_answer_without_shape_is_of_another_type(answer: str) -> None:
    params = {"arguments": ["x"], "also": {"by name": {"bound": True}}}
    returned, _ = seen(f"import array, torch\ndef f(x): return {answer}", {"x": torch.ones(2)}, **params)
    assert [_returned(value).kind for value in returned.values()] == ["other", "other"]


@pytest.mark.parametrize(
    ("answer", "kind", "slope"),
    [("x.sum().item()", float, None), ("2 * x", torch.Tensor, None), ("x.sum()", torch.Tensor, 1.0)],
)
def test_exact_gradient_needs_a_scalar_tensor(answer: str, kind: type, slope: float | None) -> None:
    x = {"x": torch.tensor(X)}
    returned, _ = seen(f"def f(x): return {answer}", x, arguments=["x"], leaves=["x"], exact=True)
    assert type(returned["y"]) is kind
    found = returned["gradient x"]
    assert found is None if slope is None else bool((found == slope).all())


def test_a_graph_that_the_submission_has_freed_reaches_nothing() -> None:
    source = "def f(x):\n    y = (x * x).sum()\n    y.backward()\n    return y"
    returned, facts = seen(source, {"x": torch.tensor(X)}, arguments=["x"], leaves=["x"])
    assert returned["gradient x"] is None
    assert facts["graph"] is True


def test_argument_may_alias_another_or_carry_its_graph() -> None:
    source = "def f(x, same, other, kept):\n    assert same is x\n    return (same + other).sum() + kept.sum() * 10"
    returned, _ = seen(
        source,
        {"x": torch.tensor(X), "kept": torch.tensor([3.0, 5.0])},
        arguments=["x", "same", "other", "kept"],
        aliases={"same": {"of": "x"}, "other": {"of": "x", "plus": -1.0}},
        graphs={"kept": "x"},
        leaves=["x"],
    )
    assert returned["y"].item() == pytest.approx(2 * sum(map(sum, X)) - 6 + 80)
    assert (returned["gradient x"] == 2.0 + 20.0).all()
    assert returned["kept afterwards"].tolist() == [3.0, 5.0]


def test_own_objects_serve_as_arguments_and_in_refused_calls() -> None:
    source = "def f(x, by, more=0.0):\n    return x * by(x) + more"
    own = {"by": torch.sum, "failing": lambda x: [][0]}
    raises = {
        "error": {"by": {"of": "failing"}},
        "of one": {"x": [2.0]},
        "named": {"more": {"of": "x"}},
        "odd": {"les": 1},
    }
    returned, facts = seen(source, {"x": torch.tensor([1.0, 2.0])}, own, arguments=["x", "by"], raises=raises)
    assert returned["y"].tolist() == [3.0, 6.0]
    assert facts["error"]["types"][0] == "IndexError"
    assert facts["of one"] is facts["named"] is None
    assert "les" in facts["odd"]["message"]


def test_dictionary_is_an_argument_of_further_calls() -> None:
    params = {
        "function": "f",
        "returns": ["y"],
        "arguments": ["counts"],
        "values": "numpy",
        "given": {"counts": {"a": 1}},
    }
    calls = [{"counts": {"a": 2, "b": 3}}]
    returned, _ = calling.again(module("def f(counts): return sum(counts.values())"), {}, {**params, "calls": calls})
    assert [returned["y 1"].item(), returned["y 2"].item()] == [1, 5]


def test_further_calls_show_lists_and_parts_that_are_compared_as_they_are() -> None:
    source = "KEPT = {}\ndef f(row, more):\n    row.append(more)\n    KEPT[more] = 1\n    return more, KEPT"
    params = {"function": "f", "returns": ["y", "turn"], "as_is": ["turn"], "arguments": ["row", "more"]}
    params |= {"values": "python", "changes": ["row"], "given": {"row": [1], "more": 2}, "calls": [{"more": 3}]}
    returned, facts = calling.again(module(source), {}, params)
    assert [returned["y 1"].item(), returned["y 2"].item()] == [2, 3]
    turn = {"2": 1, "3": 1}
    afterwards = {"row afterwards 1": [1, 2], "row afterwards 2": [1, 3]}
    assert facts == {"random": [], "turn 1": turn, "turn 2": turn, **afterwards}


KEYS = {key: {1: []} for key in (3, "3", -0.5, "", "-", "None", None, (), ("a",), (1, ("'", True)), "'x'", "(", "a b")}


@pytest.mark.parametrize(
    ("read", "value", "what"),
    [
        (calling.size_of, torch.tensor([-2.0, 1.0]), 2.0),
        (calling.size_of, -3, 3.0),
        (calling.size_of, float("inf"), "inf"),
        (calling.size_of, None, "nothing"),
        (calling.size_of, True, "a truth value"),
        (calling.kind_of, defaultdict(float), "a dictionary"),
        (calling.kind_of, OrderedDict(), "a dictionary"),
        (calling.kind_of, np.float64(2.0), "a number"),
        (calling.kind_of, True, "a truth value"),
        (calling.kind_of, np.bool_(True), "a NumPy array"),
        (calling.keyed, {3: {"3": 1}, ("a", 1): (2,)}, {"3": {"'3'": 1}, "('a', 1)": [2]}),
        (lambda value: calling.unkeyed(calling.keyed(value)), KEYS, KEYS),
        (lambda value: calling.unkeyed({"3d": {"(": value}}), 1, {"3d": {"(": 1}}),
        (lambda value: calling.parts_of(value, ["y"], "torch")["y"].item(), np.float64(0.1), 0.1),
        (lambda value: calling.parts_of(value, ["y"], "numpy")["y"].dtype.name, np.array([True]), "bool"),
        (lambda value: calling.parts_of(value, ["y"], "numpy")["y"].dtype.name, np.array([1], np.int32), "int64"),
        (as_python, {"of": "t y", "is": "1 / 0"}, "lambda t, y: 1 / 0"),
        (as_python, {"of": 1}, "{'of': 1}"),
    ],
)
def test_value_has_a_size_and_a_kind(read: Callable[[Any], Any], value: Any, what: Any) -> None:
    assert read(value) == what


@pytest.mark.parametrize("call", ["callback(0)", "callback(0, 1.0, 2)", "callback(0, los=1.0)"])
def test_callback_called_wrongly_says_its_arguments(call: str) -> None:
    told = "takes 2 arguments, step, loss; it got"
    with pytest.raises(TypeError, match=f"the function {told}"):
        observed(DESCENT, f"def descent(callback): {call}")
    with pytest.raises(TypeError, match=told):
        eval(call, {"callback": Formula("step, loss", "step")})


# Names of parameters

NAMED = {"function": "loss", "arguments": ["x", "mode", "old", "epsilon"], "given": {"mode": "clipped", "epsilon": 0.5}}
TENSORS = {"x": torch.tensor([1.0]), "old": torch.tensor([2.0])}
ALL_FOUR: dict[str, Any] = {**TENSORS, "mode": "clipped", "epsilon": 0.5}


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def loss(x, mode, old=None, epsilon=0.2): return 1.0", None),
        ("def loss(x, mode, *, old=None, epsilon=0.2, more=1): return 1.0", None),
        ("def loss(x, mode='clipped', *rest, **named): return 1.0", None),
        ("def loss(*given, **named): return 1.0", None),
        ("def loss(x, mode, old=None, eps=0.2): return 1.0", "has no parameter called `epsilon`"),
        ("def loss(a, m, old=None, eps=0.2): return 1.0", "has no parameters called `x`, `mode` and `epsilon`"),
        ("def loss(x, mode, /, old=None, epsilon=0.2): return 1.0", "takes `x` and `mode` by place alone"),
        ("def loss(*given, **named): return None", "returns nothing where it is called by name"),
        ("def loss(x, mode, old, epsilon): raise NotImplementedError(mode)", NotImplementedError("clipped")),
        ("def loss(x, mode, old, epsilon): raise ValueError(mode)", ValueError("clipped")),
        (  # a decorator that hides the names is tried with them
            "def decorated(function): return lambda *given, **named: function(*given, **named)\n"
            "@decorated\ndef loss(x, mode, old, eps): return 1.0",
            TypeError("unexpected keyword argument 'epsilon'"),
        ),
    ],
)
def test_call_by_name_works_or_tells_the_names_or_raises(student: str, told: str | Exception | None) -> None:
    if not isinstance(told, Exception):
        assert unanswered(module(student).loss, ALL_FOUR) == told
        return
    with pytest.raises(type(told), match=str(told)):
        unanswered(module(student).loss, ALL_FOUR)


@pytest.mark.parametrize(
    "parameters",
    [
        "x, mode, old=None, epsilon=0.2",
        "x, mode, *, old=None, epsilon=0.2",
        "x, mode, previous=None, epsilon=0.2",
        "x, mode, old=None, eps=0.2",
        "x, mode, previous=None, eps=0.2",
        "x, mode, old, epsilon, /",
        "a, m, previous=None, *, epsilon=0.2",
    ],
)
def test_argument_with_unknown_name_may_be_passed_by_place(parameters: str) -> None:
    student = module(
        f"def loss({parameters}): return sum(one for one in locals().values() if not isinstance(one, str))"
    )
    params = {**NAMED, "by_name": ["old", "epsilon"], "returns": ["loss"]}
    returned, _ = calling.call(student, TENSORS, params, in_place=True)
    assert returned["loss"].item() == 3.5


def test_a_name_that_the_function_lacks_is_otherwise_an_error() -> None:
    student = module("def loss(x, mode, old=None, eps=0.2): return x")
    with pytest.raises(TypeError, match="epsilon"):
        calling.call(student, TENSORS, {**NAMED, "by_name": ["old", "epsilon"], "returns": ["loss"]})

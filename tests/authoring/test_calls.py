"""The engine's own probe, and cases as declarations: what a call of NumPy, plain Python or torch is held to."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from declared import Declared

from autograder.authoring.calls import Formula
from autograder.authoring.declarations import Draft, check_draft
from autograder.authoring.faults import Misnamed
from autograder.authoring.laws.declaration import Error, Function
from autograder.grading.compare import compare
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
    inputs = {
        name: torch.from_numpy(array.copy()) if of_torch else array.copy() for name, array in draft.inputs.items()
    }
    returned, facts = calling.call(module(student), inputs, draft.params)
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


SCALED = Declared("def scaled(x, factor): return np.array([[factor * v for v in row] for row in x])", "numpy").case(
"scaled", {"x": array(2, 3), "factor": 1.75}, "row column",
    kind="a NumPy array",
)  # fmt: skip


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def scaled(x, factor): return factor * x", ""),
        ("def scaled(x, factor): return x", "values of scaled"),
        ("def scaled(x, factor): return (factor * x).T", "shape of scaled"),
        ("def scaled(x, factor): return (factor * x).tolist()", "fact of kind"),
        ("def scaled(x, factor): return None", "returned of scaled"),
        ("def scaled(x, factor):\n x *= factor\n return x.copy()", "purity of x afterwards"),
        ("import numpy as np\ndef scaled(x, factor): return (factor * x).astype(np.float32)", "dtype of scaled"),
    ],
)
def test_array_is_graded_by_values_kind_and_argument(student: str, told: str) -> None:
    assert verdict(SCALED, student) == told


@pytest.mark.parametrize(
    "answer", ["'many'", "[[1.0], [2.0, 3.0]]", "[[None] * 3] * 2", "x.astype(str).tolist()", "{1: x}"]
)
def test_what_cannot_be_read_as_numbers_is_no_array(answer: str) -> None:
    assert compare_values(f"def scaled(x, factor): return {answer}") == "tensor"


@pytest.mark.parametrize("answer", ["array.array('d', [1])", "torch.ones(1).untyped_storage()"])
def test_answer_without_shape_is_of_another_type(answer: str) -> None:
    student = module(f"import array, torch\ndef first(x): return {answer}")
    params = {"function": "first", "arguments": ["x"], "returns": ["first"], "also": {"by name": {"bound": True}}}
    returned, _ = calling.call(student, {"x": torch.ones(2)}, params)
    assert [_returned(value).kind for value in returned.values()] == ["other", "other"]


def test_object_array_has_another_dtype() -> None:
    assert compare_values("def scaled(x, factor): return (x * factor).astype(object)") == "dtype"


def test_list_of_integers_fails_kind_and_not_dtype() -> None:
    first = Declared("def first(x): return x.argmax(axis=1)", "numpy").case(
        "first", {"x": array(2, 3)}, "row", kind="a NumPy array"
    )
    assert verdict(first, "def first(x): return x.argmax(axis=1).tolist()") == "fact of kind"
    assert verdict(first, "def first(x): return x.argmax(axis=1).astype(float)") == "dtype of first"


def compare_values(student: str) -> str:
    """The rung of what SCALED returns, whatever kind of thing it is."""
    value = next(one for one in SCALED.answer(SCALED.inputs, SCALED.params) if one.kind == "value")
    mismatch = compare([value], observed(SCALED, student))
    return mismatch.rung if mismatch else ""


ROOT = Declared(
    "def root(f, low, high):\n"
    " while high - low > 0.25:\n"
    "  middle = (low + high) / 2\n"
    "  low, high = (middle, high) if f(middle) < 0 else (low, middle)\n"
    " return (low + high) / 2",
    "python",
).case("root", {"f": Formula("x", "x * x - 2"), "low": 0.0, "high": 2.0}, counted=["f"])
HALVING = """\
def root(f, low, high):
    while high - low > 0.25:
        middle = (low + high) / 2
        if f(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
"""


def test_calls_of_a_function_argument_are_counted() -> None:
    assert verdict(ROOT, HALVING) == ""
    assert verdict(ROOT, HALVING.replace("    while", "    f(low)\n    while")) == "fact of calls of f"
    assert observed(ROOT, HALVING).returned["calls of f"].array.tolist() == [[1.0], [1.5], [1.25]]


GRADED = Declared("def energy(x): return np.array((x * x).sum())\ndef energy_gradient(x): return 2 * x").case(
    "energy", {"x": array(2, 3)}, leaves=["x"]
)


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def energy(x): return (x * x).sum()", ""),
        ("def energy(x): return (x * x).sum().detach()", "graph of energy"),
        ("def energy(x): return (x * x.detach()).sum()", "gradient of gradient x"),
    ],
)
def test_gradients_of_leaves_are_compared_with_the_oracle(student: str, told: str) -> None:
    assert verdict(GRADED, student) == told


def test_gradient_has_the_axes_of_its_leaf() -> None:
    (found,) = (one for one in GRADED.answer(GRADED.inputs, GRADED.params) if one.kind == "gradient")
    assert found.axes == ("row", "column")


def test_constant_result_carries_no_graph() -> None:
    draft = Declared("def centre(x): return x - x.mean()").case("centre", {"x": array(4)}, "entry", constant=True)
    assert verdict(draft, "def centre(x): return x - x.mean()") == ""
    assert verdict(draft, "def centre(x): return (x - x.mean()).requires_grad_()") == "graph of centre"


PULLED = Declared(
    "def gap(x, y): return np.array(((x - y) ** 2).sum())\ndef gap_gradient(x, y): return 2 * (x - y)"
).case("gap", {"x": array(2, 3), "y": array(2, 3, seed=1)}, leaves=["x"], constants=["y"], by_name=["y"])


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def gap(x, *, y): return ((x - y.detach()) ** 2).sum()", ""),
        ("def gap(x, y): return ((x - y) ** 2).sum()", "fact of pull of y"),
    ],
)
def test_no_gradient_may_reach_a_constant(student: str, told: str) -> None:
    assert verdict(PULLED, student) == told


def seen(student: str, inputs: dict[str, Any], own: Any = None, **params: Any) -> tuple[Any, Any]:
    """What the engine's own probe sees of `f`, whose one result is called y."""
    return calling.call(module(student), inputs, {"function": "f", "returns": ["y"], **params}, own)


X = [[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0]]


def test_exact_gradient_needs_a_scalar_tensor() -> None:
    for answer, kind, slope in (
        ("x.sum().item()", float, None),
        ("2 * x", torch.Tensor, None),
        ("x.sum()", torch.Tensor, 1.0),
    ):
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


@pytest.mark.parametrize(
    ("found", "size"),
    [(torch.tensor([-2.0, 1.0]), 2.0), (-3, 3.0), (float("inf"), "inf"), (None, "nothing"), (True, "a truth value")],
)
def test_size_is_json_or_the_kind(found: Any, size: Any) -> None:
    assert calling.size_of(found) == size


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (defaultdict(float), "a dictionary"),
        (OrderedDict(), "a dictionary"),
        (np.float64(2.0), "a number"),
        (True, "a truth value"),
        (np.bool_(True), "a NumPy array"),
    ],
)
def test_kind_of_a_subclass_is_that_of_its_base(found: Any, kind: str) -> None:
    assert calling.kind_of(found) == kind


def test_a_float_of_numpy_is_a_float() -> None:
    parts = calling.parts_of(np.float64(0.1), ["y"], "torch")
    assert isinstance(parts["y"], torch.Tensor)
    assert parts["y"].item() == 0.1


def test_boolean_tensor_is_right_only_as_boolean() -> None:
    draft = Declared("def above(x): return x > 0").case("above", {"x": 0.1 * array(3, 4)}, "row column")
    check_draft(draft)
    assert verdict(draft, "def above(x): return x > 0") == ""
    assert verdict(draft, "def above(x): return x > 0.1") == "values of above"
    assert verdict(draft, "def above(x): return (x > 0).double()") == "dtype of above"


def test_missing_oracle_is_named_with_its_list() -> None:
    draft = Declared("", "numpy").case("lost", {"x": array(3)}, "entry")
    with pytest.raises(FixtureError, match=r"oracle\.py does not define lost, and NOT_INDEPENDENT does not list lost"):
        draft.answer(draft.inputs, draft.params)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"leaves": "x"}, "leaves of scaled is 'x': a list: leaves=[\"x\"]."),
        ({"options": {"rtol": "1e-4"}}, "rtol of scaled is '1e-4': a number that is not negative, such as rtol=1e-6."),
        ({"options": {"atol": -1e-6}}, "atol of scaled is -1e-06: a number that is not negative, such as atol=1e-6."),
        ({"tolerances": {"usual": {"atol": ""}}}, "atol of scaled is '': a number"),
        ({"options": {"sampeld": "often"}}, "scaled has the option 'sampeld': 'sampled' is there."),
    ],
)
def test_declaration_that_judges_nothing_is_refused(declared: dict[str, Any], told: str) -> None:
    with pytest.raises(Misnamed, match=f"^{re.escape(told)}"):
        Function("scaled", {"x": "float[row]"}, "float[row]", {"row": (1, 2, 3)}, {}, **declared)


def test_error_that_mentions_a_text_is_refused() -> None:
    with pytest.raises(Misnamed, match=r"mentions is 'zero': a list: mentions=\[\"zero\"\]"):
        Error({"x": 0}, "zero")


# Functions that are arguments

DESCENT = "def descent(callback): return [callback(0, 0.5), callback(1, loss=0.25), callback(step=2, loss=0.125)]"


def descending() -> Draft:
    given = {"callback": Formula("step loss", "step + 8 * loss")}
    return Declared(DESCENT, "python").case("descent", given, "step", counted=["callback"])


@pytest.mark.parametrize(
    "call", ["callback(step, loss)", "callback(step, loss=loss)", "callback(loss=loss, step=step)"]
)
def test_a_callback_is_called_by_place_or_by_name(call: str) -> None:
    source = f"def descent(callback): return [{call} for step, loss in enumerate((0.5, 0.25, 0.125))]"
    assert verdict(descending(), source) == ""


@pytest.mark.parametrize("call", ["callback(0)", "callback(0, 1.0, 2)", "callback(0, los=1.0)"])
def test_callback_called_wrongly_says_its_arguments(call: str) -> None:
    with pytest.raises(TypeError, match="the function takes 2 arguments, step, loss; it got"):
        verdict(descending(), f"def descent(callback): {call}")
    oracle_call = call.replace("callback", "Formula('step loss', 'step')")
    with pytest.raises(TypeError, match="takes 2 arguments, step, loss; it got"):
        eval(oracle_call, {"Formula": Formula})


def test_a_callback_has_a_name_as_any_function() -> None:
    source = (
        "def descent(callback): return [len(callback.__name__) * 0 + callback(n, 0.5 ** (n + 1)) for n in range(3)]"
    )
    assert verdict(descending(), source) == ""


NAMED = {"function": "loss", "arguments": ["x", "mode", "old", "epsilon"], "given": {"mode": "clipped", "epsilon": 0.5}}
TENSORS = {"x": torch.tensor([1.0]), "old": torch.tensor([2.0])}
ALL_FOUR: dict[str, Any] = {**TENSORS, "mode": "clipped", "epsilon": 0.5}


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("x, mode, old=None, epsilon=0.2", None),
        ("x, mode, *, old=None, epsilon=0.2, more=1", None),
        ("x, mode='clipped', *rest, **named", None),
        ("*given, **named", None),
        ("x, mode, old=None, eps=0.2", "has no parameter called `epsilon`"),
        ("a, m, old=None, eps=0.2", "has no parameters called `x`, `mode` and `epsilon`"),
        ("x, mode, /, old=None, epsilon=0.2", "takes `x` and `mode` by place alone"),
    ],
)
def test_call_by_name_works_or_tells_the_names(parameters: str, told: str | None) -> None:
    student = module(f"def loss({parameters}): return 1.0")
    assert unanswered(student.loss, ALL_FOUR) == told


def test_a_decorator_that_hides_the_names_is_tried_with_them() -> None:
    student = module(
        "def decorated(function): return lambda *given, **named: function(*given, **named)\n"
        "@decorated\ndef loss(x, mode, old, eps): return 1.0"
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'"):
        unanswered(student.loss, ALL_FOUR)


@pytest.mark.parametrize("error", ["NotImplementedError", "ValueError(mode)"])
def test_function_that_raises_does_not_pass_call_by_name(error: str) -> None:
    student = module(f"def loss(x, mode, old, epsilon): raise {error}")
    with pytest.raises((NotImplementedError, ValueError)):
        unanswered(student.loss, ALL_FOUR)


def test_a_function_that_returns_nothing_takes_no_names() -> None:
    student = module("def loss(*given, **named): return None")
    assert unanswered(student.loss, ALL_FOUR) == "returns nothing where it is called by name"


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

from __future__ import annotations

import io
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from lengths import in_short
from places import KIT

from autograder.sandbox.calls import Observation, Raised, Returned, observation_in, raised_from_header
from autograder.sandbox.worker import frames, worker

MODULE = "submission_under_test"
GIVEN = {"given_under_test": "WORD = 'given'\ndef double(x):\n    return 2 * x\n"}
PROBES = """
def call(student, inputs, params):
    return {"y": student.answer(**inputs, **params)}, {}

def fact(student, inputs, params):
    return {}, {"fact": student.answer()}

def draws(student, inputs, params):
    import random, numpy, torch
    numbers = [random.random(), numpy.random.rand(), torch.rand(()).item()]
    made = torch.ones(1, requires_grad=True) * 2
    strict = torch.are_deterministic_algorithms_enabled()
    student.answer()
    return {"made": made}, {"numbers": numbers, "strict": strict}
"""

Answer = Observation | Raised | str
Converse = Callable[..., list[Answer]]


@pytest.fixture
def converse() -> Iterator[Converse]:
    """Load a source in a worker of this process, call its `answer` once per call, and return what was answered."""

    worker.know_torch()

    def answers(source: str, *calls: Mapping[str, Any]) -> list[Answer]:
        requests, written = io.BytesIO(), io.BytesIO()
        frames.write(requests, {"op": "define", "given": GIVEN, "probes": PROBES, "needed": []})
        frames.write(requests, {"op": "load", "module": MODULE, "source": source, "given": [*GIVEN]})
        for call in calls:
            run = {"op": "run", "function": "answer", "probe": "call", "params": {}, **call}
            frames.write(requests, run, safetensors.torch.save(run.pop("inputs", {})))
        requests.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in a worker: warnings are the student's affair
            worker.Worker().converse(requests, written)
        _restore_torch()
        written.seek(0)
        defined, *others = [_answer(frame) for frame in iter(lambda: frames.read(written), None)]
        assert defined == "loaded"
        return others

    yield answers
    for name in (MODULE, *GIVEN):
        sys.modules.pop(name, None)


def _restore_torch() -> None:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


def _answer(frame: frames.Frame) -> Answer:
    if frame.header["op"] == "observed":
        return observation_in(frame)
    return raised_from_header(frame.header) if frame.header["op"] == "raised" else str(frame.header["op"])


def value_of(answer: Answer) -> Returned:
    assert isinstance(answer, Observation)
    return answer.returned["y"]


def values_of(answer: Answer) -> Any:
    array = value_of(answer).array
    assert array is not None
    return array.tolist()


def returning(expression: str) -> str:
    return f"import numpy, torch\ndef answer(*args, **kwargs):\n    return {expression}\n"


# Loading


def test_function_gets_inputs_and_parameters(converse: Converse) -> None:
    source = "def answer(x, y, scale):\n    return scale * (x - y)\n"
    inputs = {"x": torch.tensor([3.0, 4.0]), "y": torch.tensor([1.0, 1.0])}
    loaded, seen = converse(source, {"inputs": inputs, "params": {"scale": 10}})
    assert loaded == "loaded"
    assert value_of(seen) == Returned("tensor", "Tensor", "float32", (2,))
    assert values_of(seen) == [20, 30]


@pytest.mark.parametrize(
    ("source", "kind", "line", "code"),
    [
        ("x = 1\ndef answer(:\n    pass\n", "SyntaxError", 2, "def answer(:"),
        ("def answer():\n    x = 1\n      y = 2\n", "IndentationError", 3, "y = 2"),
        ("if True:\n\tx = 1\n        y = 2\n", "TabError", 3, "y = 2"),
        ("x = 1\n\nraise KeyError('top')\n", "KeyError", 3, "raise KeyError('top')"),
        ("import no_such_module\n", "ModuleNotFoundError", 1, "import no_such_module"),
        ("def f():\n    g()\ndef g():\n    return 1 / 0\nf()\n", "ZeroDivisionError", 4, "return 1 / 0"),
        ("import sys\nsys.exit(3)\n", "SystemExit", 2, "sys.exit(3)"),
        ("x = 'a\0b'\n", "ValueError", None, ""),
        ("x = '\ud800'\n", "UnicodeEncodeError", None, ""),
    ],
)
def test_module_that_does_not_load_says_where(
    converse: Converse, source: str, kind: str, line: int | None, code: str
) -> None:
    (raised,) = converse(source)
    assert isinstance(raised, Raised)
    # Python 3.12 calls a null byte a syntax error of its own.
    assert kind in raised.types or ("\0" in source and "SyntaxError" in raised.types)
    assert (raised.line, raised.code) == (line, code)


# What comes back


def tensor(dtype: str, size: int) -> Returned:
    return Returned("tensor", "Tensor", dtype, (size,))


@pytest.mark.parametrize(
    ("expression", "described"),
    [
        ("[1.0, 2.0]", Returned("other", type="list")),
        ("(torch.ones(2), torch.ones(2))", Returned("other", type="tuple")),
        ("3.5", Returned("other", type="float")),
        ("True", Returned("other", type="bool")),
        ("numpy.ones(2)", Returned("other", type="ndarray")),
        ("type('T' * 500, (), {})()", Returned("other", type="T" * 80)),
        ("torch.ones(2).to_sparse()", tensor("float32", 2)),
        ("torch.ones(2).to_mkldnn()", tensor("float32", 2)),
        ("torch.ones(2) * 1j", tensor("complex64", 2)),
        ("torch.ones(2, dtype=torch.bfloat16)", tensor("bfloat16", 2)),
        ("torch.ones(2).to(torch.float8_e4m3fn)", tensor("float8_e4m3fn", 2)),
        ("torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)", tensor("qint8", 2)),
        ("torch.ones(2, device='meta')", tensor("float32", 2)),
        ("torch.empty(2**40, device='meta')", tensor("float32", 2**40)),
        ("torch.ones(2**21 + 1)", tensor("float32", 2**21 + 1)),
        ("torch.ones(1).expand(2**40)", tensor("float32", 2**40)),
    ],
)
def test_what_cannot_be_sent_is_described(converse: Converse, expression: str, described: Returned) -> None:
    value = value_of(converse(returning(expression), {})[1])
    assert (value, value.array) == (described, None)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("torch.arange(6.0).reshape(2, 3).T", [[0, 3], [1, 4], [2, 5]]),
        ("torch.arange(6.0)[::2]", [0, 2, 4]),
        ("torch.ones(1).expand(2, 2)", [[1, 1], [1, 1]]),
        ("torch.tensor([1 + 2j]).conj().imag", [-2]),
        ("torch.tensor(7)", 7),
        ("torch.empty(0, 3)", []),
        ("torch.ones(2**21)[:2]", [1, 1]),
        ("torch.nn.Parameter(torch.ones(2))", [1, 1]),
        ("type('Mine', (torch.Tensor,), {})([5.0])", [5]),
        ("type('Mine', (torch.Tensor,), {'__torch_function__': classmethod(lambda *a: 1 / 0)})([5.0])", [5]),
        ("type('Mine', (torch.Tensor,), {'detach': lambda self: self + 1})([5.0])", [5]),
    ],
)
def test_values_of_any_view_or_subclass_arrive_in_order(converse: Converse, expression: str, values: Any) -> None:
    assert values_of(converse(returning(expression), {})[1]) == values


IMPOSTORS = (  # of a tensor
    "type('Mine', (), {'__class__': torch.Tensor})()",
    "type('Mine', (torch.Tensor,), {'shape': property(lambda self: 1 / 0)})([1.0])",
    "type('Mine', (torch.Tensor,), {'numel': lambda self: 'many'})([1.0])",
    "type('Meta', (type,), {'__name__': property(lambda cls: 1 / 0)})('Mine', (), {})()",
    "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
)
ENDING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException")


@pytest.mark.parametrize(
    ("expression", "probe", "kinds"),
    [
        *((expression, "call", ()) for expression in IMPOSTORS),
        *((expression, "fact", ("ValueError", "TypeError")) for expression in (  # is no JSON
            "float('nan')", "float('inf')", "torch.ones(2)", "{1, 2}",
        )),
        *((f"(_ for _ in ()).throw({kind})", "call", (kind,)) for kind in ENDING),
    ],
)  # fmt: skip
def test_what_no_worker_can_send_costs_its_call_alone(
    converse: Converse, expression: str, probe: str, kinds: tuple[str, ...]
) -> None:
    source = f"import torch\nleft = [1]\ndef answer():\n    return left and left.pop() and {expression}\n"
    _, raised, seen = converse(source, {"probe": probe}, {})
    assert isinstance(raised, Raised)
    assert not kinds or {*kinds} & {*raised.types}
    assert isinstance(seen, Observation)


# Exceptions


def test_deepest_line_of_the_student_is_reported(converse: Converse) -> None:
    source = "import torch\ndef answer():\n    return low()\ndef low():\n    return torch.ones(2) @ torch.ones(3)\n"
    raised = converse(source, {})[1]
    assert isinstance(raised, Raised)
    assert raised.types[:2] == ("RuntimeError", "Exception")
    assert (raised.line, raised.code) == (5, "return torch.ones(2) @ torch.ones(3)")


@pytest.mark.parametrize("text", ["1 / 0", "None", "exit()", "(_ for _ in ()).throw(KeyboardInterrupt)", "Text('x')"])
def test_exception_whose_text_cannot_be_read_is_still_one(converse: Converse, text: str) -> None:
    source = (
        "class Text(str):\n    def __getitem__(self, key):\n        raise RuntimeError\n"
        f"class Mine(ValueError):\n    def __str__(self):\n        return {text}\n"
        "def answer():\n    raise Mine\n"
    )
    raised = converse(source, {})[1]
    assert isinstance(raised, Raised)
    assert (raised.types[0], raised.line) == ("Mine", 8)
    assert raised.message == "an exception whose text cannot be read"


# State


@pytest.mark.parametrize(
    "pollution",
    [
        "pass",
        "torch.set_grad_enabled(False)",
        "torch.no_grad().__enter__()",
        "torch.set_default_dtype(torch.float64)",
        "torch.set_default_device('meta')",
        "torch.manual_seed(1); numpy.random.seed(1); random.seed(1)",
        "torch.rand(5); numpy.random.rand(5); random.random()",
        "torch.use_deterministic_algorithms(True)",
    ],
)
@pytest.mark.parametrize("place", ["import", "call"])
def test_call_starts_from_the_usual_state(converse: Converse, pollution: str, place: str) -> None:
    source = f"import numpy, random, torch\ndef answer():\n    {pollution}\n"
    if place == "import":
        source += "answer()\ndef answer():\n    pass\n"
    torch_rng = torch.Generator().manual_seed(worker.FRESH_SEED)
    draws = random.Random(worker.FRESH_SEED).random(), np.random.RandomState(worker.FRESH_SEED % 2**32).rand()
    numbers = [*draws, torch.rand((), generator=torch_rng).item()]
    for answer in converse(source, *[{"probe": "draws"}] * 3)[1:]:
        assert isinstance(answer, Observation)
        assert answer.facts == {"numbers": numbers, "strict": False}
        assert answer.returned["made"] == Returned("tensor", "Tensor", "float32", (1,), requires_grad=True)
        assert answer.returned["made"].array is not None


def test_inputs_ignore_the_default_device(converse: Converse) -> None:
    pollution = "torch.set_default_device('meta')"
    source = f"import torch\n{pollution}\ndef answer(x):\n    {pollution}\n    return x\n"
    assert [
        values_of(answer) for answer in converse(source, *[{"inputs": {"x": torch.tensor([1.0, 2.0])}}] * 2)[1:]
    ] == [[1, 2]] * 2


# torch without its compiler, until someone asks for it

POSTPONED = "from autograder.sandbox.worker import tensors\ntensors.postpone()\n"
# The optimizers, einops and what else imports the compiler at its first use; prints every number in full.
WORK = """
import copy, inspect, sys
import einops, torch

def train(kind):
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 2).double()
    optimizer = kind(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        inputs = einops.rearrange(torch.randn(6, dtype=torch.float64), "(batch dim) -> batch dim", batch=2)
        model(inputs).square().sum().backward()
        optimizer.step()
    copy.deepcopy(optimizer).load_state_dict(optimizer.state_dict())
    print(kind.__name__, [parameter.tolist() for parameter in model.parameters()])

for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
    train(kind)
inspect.getmodule(train)
weight = torch.ones(3, requires_grad=True)
print(torch.autograd.grad(weight * weight, weight, torch.tensor([1.0, 2.0, 3.0])))
print(torch.autograd.functional.jacobian(lambda x: x.exp(), torch.ones(2)))
"""
LOADED = "print([name for name in ('torch._dynamo.eval_frame', 'sympy') if name in sys.modules])\n"
SHAPES = "torch.fx.experimental.symbolic_shapes"


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=KIT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_training_gives_the_same_bits_without_the_compiler() -> None:
    assert output_of(POSTPONED + WORK + LOADED) == output_of(WORK) + "[]\n"


@pytest.mark.parametrize(
    ("asked", "says"),
    in_short(
        [
            ("from torch._dynamo import eval_frame as e; print(e is sys.modules['torch._dynamo.eval_frame'])", "True"),
            ("print(torch.compile(lambda x: 2 * x, backend='eager')(torch.ones(2)).tolist())", "[2.0, 2.0]"),
            ("print(torch.func.grad(lambda x: x.square())(torch.tensor(3.0)).item())", "6.0"),
            (f"import {SHAPES} as s; print(s.expect_true(True), s.sym_eq((2, 3), (2, 4)))", "True False"),
        ],
        0,
    ),
)
def test_what_asks_for_the_compiler_gets_it(asked: str, says: str) -> None:
    step = "\nweight = torch.nn.Parameter(torch.ones(2))\nweight.sum().backward()\ntorch.optim.Adam([weight]).step()\n"
    assert output_of(f"{POSTPONED}import sys, torch{step}{asked}{step}") == f"{says}\n"

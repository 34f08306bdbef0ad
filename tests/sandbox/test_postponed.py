"""torch without its compiler, until someone asks for it: the same bits, and the compiler where it is wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lengths import in_short
from places import KIT

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
    "asked",
    in_short(
        [
            "import torch._dynamo.config; print(torch._dynamo.config is sys.modules['torch._dynamo.config'])",
            "from torch._dynamo import eval_frame; print(eval_frame is sys.modules['torch._dynamo.eval_frame'])",
            "print(torch._dynamo.is_compiling())",
            "twice = torch.compile(lambda x: 2 * x, backend='eager'); print(twice(torch.ones(2)).tolist())",
            "print(torch.compiler.disable(recursive=False)(lambda: 5)())",
            "print(torch.func.vmap(lambda x: x.square().sum())(torch.ones(3, 2)).tolist())",
            "print(torch.func.grad(lambda x: x.square())(torch.tensor(3.0)).item())",
            f"from {SHAPES} import ShapeEnv, sym_eq; print(ShapeEnv().__class__, sym_eq((2, 3), (2, 4)))",
            f"import {SHAPES} as shapes; print(shapes.expect_true(True), shapes.is_concrete_int(3))",
        ],
        0,
    ),
)
def test_what_asks_for_the_compiler_gets_it(asked: str) -> None:
    step = "\nweight = torch.nn.Parameter(torch.ones(2))\nweight.sum().backward()\ntorch.optim.Adam([weight]).step()\n"
    code = f"import sys, torch{step}{asked}{step}print(weight.tolist())"
    assert output_of(POSTPONED + code) == output_of(code)

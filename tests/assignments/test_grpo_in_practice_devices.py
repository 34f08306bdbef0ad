"""The cases of devices: with arguments that seem to lie on a GPU, what would fail there is found, and nothing else."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from places import KIT
from torch import Tensor

from autograder.grading.assignment import find_assignment

Answer = Callable[[Tensor, Tensor], Any]


PROBES = types.ModuleType("probes")
exec(find_assignment(KIT, "grpo_in_practice").probes_source(), vars(PROBES))
CPU, GPU, another_device = PROBES.CPU, PROBES.GPU, PROBES.another_device


def given() -> tuple[Tensor, Tensor]:
    return torch.arange(12.0, dtype=torch.float64).reshape(3, 4).requires_grad_(), torch.ones(3, 4, dtype=torch.int64)


def in_a_context(x: Tensor, mask: Tensor) -> Tensor:
    with torch.device(x.device):
        return torch.ones(4, dtype=torch.float64) * x


def by_autocast(x: Tensor, mask: Tensor) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        return x * mask


def written_into(where: Callable[[Tensor], Tensor]) -> Answer:
    def answer(x: Tensor, mask: Tensor) -> Tensor:
        found = where(x)
        for row in range(3):
            found[row] = x[row].sum()
        return found

    return answer


RIGHT: dict[str, Answer] = {
    "like the argument": lambda x, mask: torch.zeros_like(x) + x,
    "new from other data": lambda x, mask: x.new_tensor(torch.arange(4)) + x,
    "new from the argument": lambda x, mask: x.new_zeros(3, 4) + x,
    "on the argument's device": lambda x, mask: torch.arange(4, device=x.device) + x,
    "on a device of its type": lambda x, mask: torch.zeros(3, 4, device=x.device.type) + x,
    "on the device of a truth value": lambda x, mask: torch.zeros(3, 4, device="cuda" if x.is_cuda else "cpu") + x,
    "moved to the device": lambda x, mask: torch.arange(4).to(x.device) + x,
    "moved by name": lambda x, mask: torch.arange(4).to(device=x.device, dtype=x.dtype) + x,
    "moved to the argument": lambda x, mask: torch.arange(4).to(x) + x,
    "cast to the argument": lambda x, mask: torch.arange(4).type_as(x) + x,
    "in a context": in_a_context,
    "by autocast": by_autocast,
    "a number without axes": lambda x, mask: torch.where(mask == 0, torch.tensor(0.0), x),
    "bounds without axes": lambda x, mask: torch.minimum(x, torch.tensor(1.2, dtype=x.dtype)),
    "indices of the CPU": lambda x, mask: x[torch.arange(3), mask.sum(dim=-1) - 1],
    "borders of the CPU": lambda x, mask: torch.tensor_split(x, torch.tensor([1, 2]))[1],
    "row by row": lambda x, mask: torch.stack([row.sum() for row in x]),
    "unpacked rows": lambda x, mask: torch.stack([a + b for a, b in zip(x, mask, strict=True)]),
    "python numbers": lambda x, mask: torch.tensor([sum(row) for row in x.tolist()], device=x.device),
    "selected by truth values": lambda x, mask: x[mask.bool()] if mask.any() else x,
    "looped over by number": written_into(lambda x: x.new_zeros(3)),
    "rows of the CPU": written_into(lambda x: torch.zeros(3).to(x.device)),
    "by way of NumPy": lambda x, mask: torch.from_numpy(x.detach().cpu().numpy()).to(x.device) + x,
    "mapped": lambda x, mask: torch.vmap(lambda row: row.sum())(x),
    "an einsum": lambda x, mask: torch.einsum("ij,ij->i", x, mask.to(x.dtype)),
    "there and back": lambda x, mask: x.cpu().sum().to(x.device) + x,
    "compared with itself": lambda x, mask: x if mask.device == x.device else None,
}
WRONG: dict[str, tuple[Answer, str | None]] = {
    "made without a device": (lambda x, mask: torch.zeros(3, 4) + x, "torch.Tensor.add"),
    "made on the CPU": (lambda x, mask: torch.zeros(3, 4, device="cpu") + x, "torch.Tensor.add"),
    "counted on the CPU": (lambda x, mask: torch.arange(4) < mask.sum(dim=-1, keepdim=True), "torch.Tensor.lt"),
    "by keyword": (lambda x, mask: torch.where(mask == 0, other=x, input=torch.zeros(4)), "torch.where"),
    "moved to the CPU": (lambda x, mask: x.cpu() + x, "torch.Tensor.add"),
    "sent to the CPU": (lambda x, mask: x.to("cpu") + x, "torch.Tensor.add"),
    "the device of what was made": (lambda x, mask: torch.ones(4, device=torch.ones(4).device) * x, "torch.Tensor.mul"),
    "a list of tensors": (lambda x, mask: torch.tensor([row.sum().item() for row in x]), None),
    "the result made on the CPU": (written_into(lambda x: torch.zeros(3)), None),
    "an index of the GPU": (lambda x, mask: torch.arange(9)[mask[0]], "torch.Tensor.__getitem__"),
    "a mask of the GPU": (lambda x, mask: torch.zeros(3, 4).__setitem__(mask == 1, 1.0), "torch.Tensor.__setitem__"),
    "derived from what was made": (lambda x, mask: torch.zeros(4).exp().reshape(2, 2).sum(), None),
}


@pytest.mark.filterwarnings("ignore:User provided device_type", "ignore:To copy construct")
@pytest.mark.parametrize("name", RIGHT)
def test_code_that_follows_its_arguments_is_never_blamed(name: str) -> None:
    x, mask = given()
    alone = RIGHT[name](*given())
    with another_device(x, mask) as places:
        found = RIGHT[name](x, mask)
    assert places.fault is None
    assert places.of(found) != CPU
    torch.testing.assert_close(found, alone)


@pytest.mark.parametrize("name", WRONG)
def test_code_that_makes_tensors_on_the_cpu_is_found_out(name: str) -> None:
    answer, fault = WRONG[name]
    x, mask = given()
    with another_device(x, mask) as places:
        found = answer(x, mask)
    assert places.fault == fault
    assert fault or places.of(found) == CPU

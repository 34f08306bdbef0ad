"""What the tests of the assignments share: runs of the solution, each trained once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from sorting_task import PolicyGradientRun


class TrainedRun(NamedTuple):
    """A run of the solution, and its policy's exact expected reward, averaged over the default prompts."""

    run: PolicyGradientRun
    expected_reward: float


@pytest.fixture(scope="session")
def train() -> Callable[..., TrainedRun]:
    """Train the solution with the given settings and its defaults otherwise; each setting is trained once."""
    import torch  # imported here: most tests of the grader need neither torch nor the time that it takes
    from policy_gradient import run_policy_gradient
    from sorting_task import DEFAULT_PROMPTS, sort_inclusion_ordering_reward

    torch.set_num_threads(1)
    responses = list(itertools.product(range(5), repeat=3))
    rewards = torch.tensor(
        [[sort_inclusion_ordering_reward(prompt, list(r)) for r in responses] for prompt in DEFAULT_PROMPTS]
    ).double()

    @functools.cache
    def train_once(deltas_mode: str = "rewards", loss_mode: str = "naive", seed: int = 5) -> TrainedRun:
        run = run_policy_gradient(deltas_mode=deltas_mode, loss_mode=loss_mode, seed=seed, progress=False)
        with torch.no_grad():
            probs = run.model(torch.tensor(DEFAULT_PROMPTS)).double().softmax(dim=-1)
        first, second, third = torch.tensor(responses).T
        prob_of_response = probs[:, 0, first] * probs[:, 1, second] * probs[:, 2, third]  # batch response
        return TrainedRun(run, (prob_of_response * rewards).sum(dim=-1).mean().item())

    return train_once

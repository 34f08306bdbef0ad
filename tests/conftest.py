"""Fixtures that more than one test file uses, and the spreading of the tests over the cores.

A file of tests at a time; `-n 0` runs them one after another. Not in pyproject.toml, whose options would hold for the
folder of a student that is unpacked below it.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from sorting_task import PolicyGradientRun

MOST = 4  # workers: each of them may have warm servers of its own
LONGEST = (  # files, the longest first: begun last, one of them would keep a single core busy at the end
    "test_readme", "test_selfcheck", "test_attacks", "test_grading", "test_nbgrader", "test_terms", "test_batch",
    "test_honest", "test_cluster", "test_grpo", "test_browser", "test_assignment_text", "test_verify", "test_release",
    "test_adding", "test_sandbox", "test_mutated_submissions", "test_bundles", "test_build",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Ask pytest-xdist for workers, unless the command line says how many."""
    chosen = config.option
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if not is_worker and getattr(chosen, "numprocesses", 0) is None and not (chosen.usepdb or chosen.collectonly):
        chosen.numprocesses = min(MOST, os.cpu_count() or 1)
        chosen.dist, chosen.loadscopereorder = "loadfile", False


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "long: minutes of what shorter tests hold in part; run by `pytest -m long`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests to who asks for them, put the longest files first, and leave the order within each file."""
    named = any("::" in argument for argument in config.args)
    long = [item for item in items if item.get_closest_marker("long") and not (named or config.option.markexpr)]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
    places = {f"{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


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

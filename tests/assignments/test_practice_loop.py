"""The given loop of the practice assignment, with the solution's functions: every option does what it says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from language_model import CausalLM
from places import KIT
from practice_loop import Batch, Settings, loss_of, prepared, train, update
from practice_task import CONFIG, PracticeTokenizer, Rollout, sample_rollout

from autograder.grading.assignment import find_assignment

CHECKPOINT = find_assignment(KIT, "grpo_in_practice").solution / "checkpoint"
TOKENIZER = PracticeTokenizer()
SMALL = Settings(num_steps=2, num_prompts=2, num_responses=4, max_new_tokens=10, difficulties=("easy",))
REWARDS = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.1, 0.1, 0.0, 0.0]])

Prepare = Callable[..., Batch | None]


@pytest.fixture
def model() -> CausalLM:
    torch.manual_seed(3)
    return CausalLM(replace(CONFIG, hidden_size=16, num_layers=1, num_heads=2)).eval()


@pytest.fixture
def rollout(model: CausalLM) -> Rollout:
    torch.manual_seed(1)
    return sample_rollout(model, TOKENIZER, ["7+5-9", "1+1+1", "2-3+4"], 4, max_new_tokens=10)


@pytest.fixture
def prepare(model: CausalLM, rollout: Rollout) -> Prepare:
    def prepare(sampler: Any = None, reference: Any = None, rewards: torch.Tensor = REWARDS, **options: Any) -> Any:
        return prepared(model, sampler or model, reference, rollout, rewards, replace(SMALL, **options))

    return prepare


def digits(problem: str, response: str) -> float:
    """A reward that a model without any training earns now and then."""
    return response.count("7") / 8


def weights_of(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


# What a step learns from


def test_dynamic_sampling_leaves_out_groups_without_spread(prepare: Prepare, rollout: Rollout) -> None:
    batch = prepare(oversample=2)
    assert batch.rollout.responses == rollout.responses[:4] + rollout.responses[8:]
    assert len(batch.advantages) == len(batch.mask) == len(batch.old_log_probs) == 8
    assert len(prepare(oversample=2, num_prompts=1).mask) == 4
    assert prepare(oversample=2, rewards=torch.zeros(3, 4)) is None


def test_another_sampler_leaves_a_gap_which_each_correction_treats_in_its_way(
    prepare: Prepare, model: CausalLM
) -> None:
    sampler = copy.deepcopy(model)
    with torch.no_grad():
        sampler.head.weight *= 1.5
    ignored, ratio, token, sequence = (
        prepare(sampler, correction=name) for name in ("none", "ratio", "token", "sequence")
    )
    assert ignored.sampler_gap == ratio.sampler_gap == token.sampler_gap > 0.01
    assert (ignored.weights, ratio.weights) == (None, None)
    assert torch.equal(ignored.old_log_probs, token.old_log_probs)
    assert not torch.equal(ignored.old_log_probs, ratio.old_log_probs)
    counted = token.mask == 1
    apart = (token.old_log_probs - ratio.old_log_probs).exp().clamp(max=2.0)
    torch.testing.assert_close(token.weights[counted], apart[counted])
    assert not torch.equal(sequence.weights, token.weights)


def test_the_penalty_stands_in_the_loss_or_in_the_reward(prepare: Prepare, model: CausalLM) -> None:
    reference = copy.deepcopy(model)
    with torch.no_grad():
        reference.head.weight *= 1.5
    free = prepare()
    in_loss, in_reward = (prepare(reference=reference, kl_in=place, kl_coefficient=0.1) for place in ("loss", "reward"))
    assert torch.equal(in_loss.advantages, free.advantages)
    assert not torch.equal(in_reward.advantages, free.advantages)
    log_probs = free.old_log_probs
    without = loss_of(log_probs, in_loss, SMALL)
    penalised = loss_of(log_probs, in_loss, replace(SMALL, kl_in="loss", kl_coefficient=0.1))
    x = (in_loss.ref_log_probs - log_probs)[in_loss.mask == 1]
    torch.testing.assert_close(penalised - without, 0.1 * (x.exp() - x - 1).mean(), rtol=1e-4, atol=1e-6)


# Updates


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "sequence", "epsilon_low": 0.05, "epsilon_high": 0.02, "normalization": "sequence_mean"},
        {"objective": "cispo", "epsilon_low": 0.1, "epsilon_high": 0.1, "normalization": "constant_length"},
        {"epsilon_low": 0.05, "epsilon_high": 0.1, "dual_clip": 1.05, "normalization": "sequence_mean"},
        {"kl_in": "loss", "kl_coefficient": 0.7, "kl_estimator": "k2", "normalization": "constant_length"},
        {"correction": "token", "normalization": "token_mean"},
        {"objective": "sequence", "correction": "sequence", "kl_in": "loss", "kl_coefficient": 0.2},
        {"advantage": "best", "normalization": "sequence_mean"},
        {"truncated": "mask", "normalization": "constant_length"},
    ],
    ids=["defaults", "gspo", "cispo", "dual-clip", "kl", "weights", "all", "imitation", "masked"],
)
def test_micro_batches_make_the_update_of_the_whole_batch(
    model: CausalLM, prepare: Prepare, options: dict[str, Any]
) -> None:
    """The model has left the policy that sampled, so that there is something to clip; responses differ in length."""
    sampler, moved = copy.deepcopy(model), copy.deepcopy(model)
    with torch.no_grad():
        sampler.head.weight *= 1.2
        moved.head.weight *= 0.7
    found = {}
    for num_parts in (1, 2, 5):
        own = copy.deepcopy(moved)
        chosen = {"num_parts": num_parts, "max_grad_norm": 1e9, **options}
        batch = prepare(sampler, copy.deepcopy(sampler), **chosen)
        diagnostics = update(own, torch.optim.SGD(own.parameters(), lr=1.0), batch, replace(SMALL, **chosen))
        found[num_parts] = weights_of(own), diagnostics
    for num_parts in (2, 5):
        torch.testing.assert_close(found[1][0], found[num_parts][0], rtol=0, atol=1e-6)
        assert found[1][1] == pytest.approx(found[num_parts][1], rel=1e-4, abs=1e-6)
    assert (found[1][0] - weights_of(moved)).abs().max() > 1e-3


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "sequence", "normalization": "sequence_mean", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
        {"objective": "cispo", "epsilon_high": 1.0},
        {"dual_clip": 3.0, "normalization": "constant_length", "advantage": "mean"},
        {"oversample": 2, "truncated": "penalty", "epsilon_high": 0.28},
        {"sampler_lag": 1, "sampler_dtype": "bfloat16", "correction": "sequence"},
        {"kl_in": "reward", "kl_coefficient": 0.1, "advantage": "rloo", "autocast": "bfloat16"},
        {"kl_in": "loss", "kl_coefficient": 0.1, "kl_estimator": "k2", "truncated": "mask"},
        {"num_parts": 3, "normalization": "sequence_mean"},
        {"num_parts": 3, "objective": "cispo", "epsilon_high": 1.0, "oversample": 2, "truncated": "penalty"},
    ],
    ids=["gspo", "cispo", "dr-grpo", "dapo", "stale", "rloo", "k2", "parts", "parts-of-cispo"],
)
def test_a_run_with_these_options_moves_the_model_and_records_every_step(
    model: CausalLM, options: dict[str, Any]
) -> None:
    before = weights_of(model)
    run = train(model, TOKENIZER, replace(SMALL, **options), digits)
    assert [record.step for record in run.records] == [0, 1]
    assert not torch.equal(weights_of(run.model), before)
    assert bool(weights_of(run.model).isfinite().all())
    assert not run.model.training
    assert {"reward", "accuracy", "entropy", "gradient_norm", "sampler_gap"} <= set(run.records[0].values)


@pytest.mark.long
def test_training_from_the_checkpoint_solves_more_problems() -> None:
    run = train(CausalLM.from_pretrained(CHECKPOINT), TOKENIZER, Settings())
    accuracy = run.curve("accuracy")
    assert sum(accuracy[-10:]) / 10 > sum(accuracy[:5]) / 5 + 0.05

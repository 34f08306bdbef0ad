"""What is given to students: rewards, model, sampler, and what a run leaves on disk."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from sorting_task import (
    Model,
    PolicyGradientRun,
    Record,
    Sample,
    generate_responses,
    progress_bar,
    save_run,
    sort_distance_reward,
    sort_inclusion_ordering_reward,
)

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def model() -> Model:
    """A model whose sizes all differ: vocab 7, dim 6, prompts of 4, responses of 3."""
    torch.manual_seed(0)
    return Model(7, 6, 4, 3)


# Rewards


@pytest.mark.parametrize(
    ("response", "distance", "inclusion_and_ordering"),
    [
        ([0, 1, 2, 3], 4, 4 + 3),
        ([7, 2, 2, 5], 1, 1 + 2),
        ([0, 3, 1, 2], 1, 4 + 2),
        ([3, 1, 0, 2], 1, 4 + 1),
        ([9, 8, 7, 6], 0, 0 + 0),
        ([5, 5, 5, 5], 0, 0 + 3),
    ],
)
def test_the_worked_examples_earn_what_was_computed_by_hand(response, distance, inclusion_and_ordering):
    prompt = [3, 1, 0, 2]
    assert sort_distance_reward(prompt, response) == distance
    assert sort_inclusion_ordering_reward(prompt, response) == inclusion_and_ordering


@pytest.mark.parametrize("reward", [sort_distance_reward, sort_inclusion_ordering_reward])
def test_a_response_of_another_length_than_the_prompt_is_refused_with_both_lengths(reward):
    with pytest.raises(AssertionError, match="prompt has 3 tokens and response has 2"):
        reward([1, 0, 2], [0, 1])


# Model and sampler


def test_the_model_computes_what_its_loops_say(model):
    prompt = [0, 6, 2, 3]
    embedding = model.embedding.weight
    hidden = sum(embedding[token] @ model.encode_weights[position] for position, token in enumerate(prompt))
    logits = [embedding @ (hidden @ model.decode_weights[position]) for position in range(3)]
    torch.testing.assert_close(model(torch.tensor([prompt]))[0], torch.stack(logits))


class Certain(torch.nn.Module):
    """Answers prompt i with token 2i + k at position k, and nearly always so."""

    def forward(self, prompts: torch.Tensor) -> torch.Tensor:
        tokens = 2 * torch.arange(len(prompts)).unsqueeze(1) + torch.arange(2)
        return 100 * torch.nn.functional.one_hot(tokens, 8).float()


def test_each_prompt_gets_its_own_responses_at_their_own_positions():
    responses = generate_responses(torch.zeros(3, 4, dtype=torch.int64), Certain(), 5)
    assert responses.tolist() == [[[0, 1]] * 5, [[2, 3]] * 5, [[4, 5]] * 5]


def test_responses_follow_the_distribution_of_the_model():
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])

    class Uneven(torch.nn.Module):
        def forward(self, prompts: torch.Tensor) -> torch.Tensor:
            return probs.log().unsqueeze(0)

    torch.manual_seed(1)
    responses = generate_responses(torch.zeros(1, 2, dtype=torch.int64), Uneven(), 20_000)[0]
    shares = torch.nn.functional.one_hot(responses, 3).float().mean(dim=0)
    torch.testing.assert_close(shares, probs, atol=0.02, rtol=0)  # 0.02 is more than five standard errors


def test_sampling_is_repeatable_builds_no_graph_and_draws_once(model):
    prompts = torch.tensor([[0, 6, 2, 3], [1, 1, 5, 4]])
    torch.manual_seed(3)
    first, state = generate_responses(prompts, model, 5), torch.get_rng_state()
    torch.manual_seed(3)
    probs = model(prompts).softmax(dim=-1).reshape(6, 7)
    torch.multinomial(probs, 5, replacement=True)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    assert torch.equal(generate_responses(prompts, model, 5), first)
    assert not first.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


# What a run leaves on disk


def test_the_log_tells_settings_steps_and_sampled_responses(model, tmp_path):
    samples = [
        Sample([1, 0, 2], [0, 1, 2], [-0.5, -0.25, -1e-9], reward=5.0, delta=1.5),
        Sample([1, 0, 2], [0, 0, 2], [-0.5, -2.0, -1.0], reward=4.0, delta=-1.5),
        Sample([3, 2, 4], [2, 3, 4], [-0.5, -0.25, -0.125], reward=5.0, delta=0.0),
    ]
    settings = {"deltas_mode": "centered_rewards", "seed": 7}
    run = PolicyGradientRun(model, [Record(0, 0, 1.0, 2.0)], settings, samples)
    log = save_run(run, tmp_path)[1].read_text(encoding="utf-8")
    assert "deltas_mode  centered_rewards\n" in log
    assert "seed         7\n" in log
    assert log.count("prompt [1, 0, 2]") == log.count("prompt [3, 2, 4]") == 1
    assert "response [0, 0, 2]" in log
    assert "-2.000" in log
    assert "-0.000" not in log
    assert "reward  4.000   delta  -1.500" in log


@pytest.mark.parametrize("records", [[], [Record(0, 0, math.nan, 2.0)], [Record(0, 0, math.inf, 2.0)]])
def test_a_run_that_went_wrong_can_still_be_saved(model, tmp_path, records):
    image_path, log_path = save_run(PolicyGradientRun(model, records), tmp_path)
    assert image_path.read_bytes().startswith(PNG)
    assert log_path.read_text(encoding="utf-8").startswith("Steps")


# Progress


def test_without_tqdm_there_is_no_bar_and_no_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(progress_bar(range(3), True)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")

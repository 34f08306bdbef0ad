"""The given task of the practice assignment: problems, tokens, rollouts, checkpoint and the script that makes it."""

from __future__ import annotations

import random

import pytest
import torch
from language_model import EOS, CausalLM
from make_checkpoint import next_token_loss, written_answer
from places import KIT
from practice_task import (
    CONFIG,
    TERMS,
    PracticeTokenizer,
    Rollout,
    chosen_log_probs,
    draw_problem,
    prompt_text,
    response_logits,
    sample_rollout,
)

from autograder.grading.assignment import find_assignment

FOLDER = find_assignment(KIT, "grpo_in_practice").solution
CHECKPOINT = FOLDER / "checkpoint"
TOKENIZER = PracticeTokenizer()


@pytest.fixture(scope="module")
def tiny() -> CausalLM:
    torch.manual_seed(3)
    return CausalLM(CONFIG).eval()


@pytest.fixture(scope="module")
def rollout(tiny: CausalLM) -> Rollout:
    torch.manual_seed(0)
    return sample_rollout(tiny, TOKENIZER, ["7+5-9", "1-2+3-4+5-6"], 24, max_new_tokens=12)


# Tokens


def test_every_text_that_the_model_reads_comes_back_from_its_tokens() -> None:
    rng = random.Random(0)
    for _ in range(100):
        problem = draw_problem(rng.choice(list(TERMS)), rng)
        text = written_answer(problem, rng)
        assert TOKENIZER.batch_decode([TOKENIZER(text).input_ids]) == [text]
        assert prompt_text(TOKENIZER, problem) == f"<user>{problem}<assistant>"


# Rollouts


def test_a_response_counts_up_to_its_end_token_and_is_truncated_without_one(rollout: Rollout) -> None:
    ids = rollout.input_ids[:, rollout.prompt_length :].tolist()
    assert 0 < int(rollout.truncated.sum()) < len(ids)  # the tiny model does both
    for row, mask, truncated, length in zip(
        ids, rollout.mask.tolist(), rollout.truncated, rollout.lengths, strict=True
    ):
        ends = [place for place, token in enumerate(row) if token == TOKENIZER.eos_token_id]
        counted = ends[0] + 1 if ends else len(row)
        assert bool(truncated) == (not ends)
        assert mask == [1] * counted + [0] * (len(row) - counted)
        assert length == counted


def test_log_probs_are_those_of_the_tokens_one_by_one(tiny: CausalLM, rollout: Rollout) -> None:
    with torch.no_grad():
        found = chosen_log_probs(response_logits(tiny, rollout), rollout)
        for row in (0, 30):
            prompt = TOKENIZER(prompt_text(TOKENIZER, rollout.problems[row // 24])).input_ids
            ids = [*prompt, *rollout.input_ids[row, rollout.prompt_length :].tolist()]
            for place in range(int(rollout.lengths[row])):
                before = torch.tensor([ids[: len(prompt) + place]])
                expected = tiny(before).logits[0, -1].log_softmax(dim=-1)[ids[len(prompt) + place]]
                torch.testing.assert_close(found[row, place], expected, rtol=1e-4, atol=1e-5)
    assert bool((found[rollout.mask == 0] == 0).all())


# What the model has read, and the checkpoint


def test_the_loss_of_pretraining_counts_answers_and_their_ends_alone(tiny: CausalLM) -> None:
    problems, answers = ["7+5-9", "1+1+1"], ["3", "12>3"]
    prompts = [prompt_text(TOKENIZER, problem) for problem in problems]
    terms = []
    with torch.no_grad():
        for prompt, answer in zip(prompts, answers, strict=True):
            ids = TOKENIZER(f"{prompt}{answer}{EOS}").input_ids
            log_probs = tiny(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            start = len(TOKENIZER(prompt).input_ids)
            terms += [-float(log_probs[place - 1, ids[place]]) for place in range(start, len(ids))]
        found = next_token_loss(tiny, TOKENIZER, prompts, answers)
    assert float(found) == pytest.approx(sum(terms) / len(terms), rel=1e-4)


def test_the_checkpoint_is_small_and_of_these_tokens() -> None:
    assert sum(path.stat().st_size for path in CHECKPOINT.iterdir()) <= 250_000
    model = CausalLM.from_pretrained(CHECKPOINT)
    assert model.config == CONFIG
    assert model.config.vocab_size == len(TOKENIZER)


def test_the_model_is_the_one_of_the_first_half() -> None:
    theirs = find_assignment(KIT, "grpo_language_model").solution / "language_model.py"
    assert (FOLDER / "language_model.py").read_bytes() == theirs.read_bytes()

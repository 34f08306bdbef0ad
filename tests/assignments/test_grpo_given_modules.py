"""GRPO on a language model: its given modules, the numbers of its text, and that it learns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest
import torch
from addition_task import (
    accuracy,
    is_correct,
    last_number,
    prompt_text,
    sample_rollout,
    score_rollout,
    split_problems,
    sum_reward,
    up_to_end,
)
from grpo_language_model import group_advantages, grpo_loss, train
from language_model import CausalLM, CausalLMConfig, CharTokenizer
from places import KIT

from autograder.grading.assignment import find_assignment

ASSIGNMENT = find_assignment(KIT, "grpo_language_model")
CHECKPOINT = ASSIGNMENT.solution / "checkpoint"
TEXT = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
TOKENIZER = CharTokenizer()


@pytest.fixture
def tiny() -> CausalLM:
    """A transformer of a few weights, in float64."""
    torch.manual_seed(3)
    return CausalLM(CausalLMConfig(vocab_size=5, hidden_size=8, num_layers=2, num_heads=2)).double()


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# The given modules


def test_text_becomes_tokens_and_text_again() -> None:
    text = TOKENIZER.apply_chat_template(
        [{"role": "user", "content": "17+25"}, {"role": "assistant", "content": "42"}], tokenize=False
    )
    assert text == "<user>17+25<assistant>42<eos>"
    ids = TOKENIZER(text, return_tensors="pt").input_ids
    assert ids.shape == (1, 10)
    assert TOKENIZER.decode(ids[0]) == text
    assert TOKENIZER.batch_decode(ids, skip_special_tokens=True) == ["17+2542"]
    with pytest.raises(ValueError, match="no token for 'x'"):
        TOKENIZER("x")


def test_padding_at_the_left_changes_no_prediction(tiny: CausalLM) -> None:
    ids = torch.tensor([[2, 4, 3, 2]])
    padded = torch.tensor([[0, 0, 2, 4, 3, 2]])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1]])
    torch.testing.assert_close(tiny(padded, attention_mask=mask).logits[:, 2:], tiny(ids).logits)


def test_generation_with_a_cache_takes_the_tokens_that_whole_passes_predict() -> None:
    model = CausalLM.from_pretrained(CHECKPOINT)
    inputs = TOKENIZER(
        [prompt_text(TOKENIZER, "17+25"), prompt_text(TOKENIZER, "8+5")],
        return_tensors="pt",
        padding=True,
        padding_side="left",
    )
    tokens = model.generate(**inputs, max_new_tokens=24)
    start = inputs.input_ids.shape[1]
    mask = torch.cat([inputs.attention_mask, up_to_end(tokens[:, start:], TOKENIZER.eos_token_id)], dim=1)
    predicted = model(tokens, attention_mask=mask).logits.argmax(-1)[:, start - 1 : -1]
    kept = mask[:, start:] == 1
    assert torch.equal(predicted[kept], tokens[:, start:][kept])


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        ("42", 1.1),
        ("7+5=12,1+2+1=4,42", 1.1),
        ("7+5=12,1+2+1=4,43", 0.1),
        ("17+25=42", 1.0),
        ("042", 1.0),
        ("42,", 1.0),
        ("", 0.0),
        ("=", 0.0),
        ("41,42", 1.1),
        ("42,41", 0.1),
    ],
)
def test_the_last_number_is_the_answer_and_its_form_earns_a_little(response: str, reward: float) -> None:
    assert sum_reward("17+25", response) == pytest.approx(reward)
    assert (last_number(response) == 42) == is_correct("17+25", response)


def test_a_rollout_holds_what_its_responses_say() -> None:
    torch.manual_seed(0)
    rollout = sample_rollout(CausalLM.from_pretrained(CHECKPOINT), TOKENIZER, ["1+1", "45+67", "8+90"], 4)
    assert (rollout.num_responses, len(rollout.responses), rollout.prompt_length) == (4, 12, 7)
    assert rollout.attention_mask[:4, : rollout.prompt_length].tolist() == [[0, 0, 1, 1, 1, 1, 1]] * 4
    for ids, mask, text in zip(rollout.input_ids, rollout.attention_mask, rollout.responses, strict=True):
        kept = ids[rollout.prompt_length :][mask[rollout.prompt_length :] == 1]
        assert TOKENIZER.decode(kept, skip_special_tokens=True) == text
    rewards = score_rollout(rollout, lambda problem, response: len(problem) + len(response) / 100)
    assert rewards.shape == (3, 4)
    assert rewards.floor().tolist() == [[3.0] * 4, [5.0] * 4, [4.0] * 4]


# It learns


@pytest.mark.long
def test_training_lifts_the_share_of_held_out_sums_as_the_text_says(one_thread: None) -> None:
    """Half a minute of one core where nothing else runs: the run of seed 0 in the text, whole."""
    problems, held_out = split_problems()
    model = CausalLM.from_pretrained(CHECKPOINT)

    def solved() -> tuple[float, float]:
        torch.manual_seed(0)
        return accuracy(model, TOKENIZER, held_out), accuracy(model, TOKENIZER, held_out, do_sample=False)

    rows = re.findall(r"\| (checkpoint|seed \d) \| (\S+) \| (\S+) \|", TEXT)
    stated = {name: (float(sampled), float(greedy)) for name, sampled, greedy in rows}
    before = solved()
    run = train(model, TOKENIZER, problems, progress=False)
    after = solved()
    assert before == pytest.approx(stated["checkpoint"], abs=0.02)
    assert after == pytest.approx(stated["seed 0"], abs=0.08)  # other processors draw other samples
    assert after[0] - before[0] > 0.25
    assert after[1] > before[1]
    lengths = [record.response_length for record in run.records]
    assert lengths[0] < 12 < 16 < min(lengths[-20:])


def test_the_stated_gains_are_those_of_the_table() -> None:
    stated = {name: float(share) for name, share in re.findall(r"\| (checkpoint|seed \d) \| (\S+) \|", TEXT)}
    gains = [stated[f"seed {seed}"] - stated["checkpoint"] for seed in range(3)]
    assert f"right by {sum(gains) / 3:.3f}" in TEXT.replace("\n", " ")
    assert f"less than {math.floor(100 * min(gains)) / 100}" in TEXT
    assert "solves 0.44" in TEXT
    assert "and 0.76" in TEXT


# The text


def _table(text: str, heading: str) -> dict[str, list[float]]:
    section = text.split(heading)[1]
    rows = re.findall(r"^\| (`[^|]*) \| (-?[\d.]+) \| (-?[\d.]+) \|$", section, re.MULTILINE)
    return {re.findall(r"`(\w+)`", name)[0]: [float(a), float(b)] for name, a, b in rows}


def test_the_texts_advantages_are_those_of_the_code() -> None:
    rewards = torch.tensor([[1.0, 1, 0, 1, 0]], dtype=torch.float64)
    stated = _table(TEXT, "## `group_advantages`")
    for mode in ("mean", "mean_std", "leave_one_out"):
        found = group_advantages(rewards, mode)[0]
        assert stated[mode] == pytest.approx([float(found[0]), float(found[2])], abs=5e-5)


def test_the_texts_gradients_of_two_lengths_are_those_of_the_code() -> None:
    stated = _table(TEXT, "## `grpo_loss`")
    mask = (torch.arange(7) < torch.tensor([4, 7])[:, None]).long()
    for normalization in ("sequence_mean", "token_mean", "constant_length"):
        scored = torch.zeros(2, 7, dtype=torch.float64, requires_grad=True)
        advantages = torch.full((2,), 2.0, dtype=torch.float64)
        loss = grpo_loss(scored, scored.detach(), advantages, mask, normalization=normalization, max_length=7)
        (found,) = torch.autograd.grad(loss, scored)
        assert stated[normalization] == pytest.approx([-float(found[0, 0]), -float(found[1, 0])], abs=5e-5)

"""The second assignment: its solution, the given modules, its fixtures, its text, and that it learns."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from addition_task import (
    accuracy,
    is_correct,
    is_well_formed,
    last_number,
    problem_batches,
    prompt_text,
    sample_rollout,
    save_run,
    score_rollout,
    split_problems,
    sum_reward,
    up_to_end,
)
from all_assignments import generator_of
from grpo_language_model import compute_response_log_probs, group_advantages, grpo_loss, train
from language_model import CausalLM, CausalLMConfig, CharTokenizer
from places import KIT
from pretrain import bare, pretrain, worked

from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.handout.release import handout_files, zip_bytes
from autograder.grading.assignments import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "grpo_language_model")
CHECKPOINT = ASSIGNMENT.solution / "checkpoint"
TEXT = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
RIGHT_ANSWERS = sorted((ASSIGNMENT.folder / "right_answers").glob("*.py"))
TOKENIZER = CharTokenizer()
GENERATOR = generator_of(ASSIGNMENT.name)
ORACLE = GENERATOR["oracle"]

Grade = Callable[[str], Report]


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Grade:
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    return lambda source: grader.grade(Submission("ada", "ada.py", "", source), sandbox)


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


# Grading


@pytest.mark.long
def test_a_right_submission_takes_less_time_than_a_student_notices(grade: Grade) -> None:
    grade(solution_source(ASSIGNMENT))
    report = grade(solution_source(ASSIGNMENT))
    assert sum(item.seconds for item in report.items) < 5  # a tenth of a second where nothing else runs


def test_every_item_has_public_and_hidden_cases() -> None:
    assert all(item.public and item.hidden for item in ASSIGNMENT.items)
    assert ASSIGNMENT.max_points == 100


# The oracle


def _slopes(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    found = np.zeros(at.shape)
    for index in np.ndindex(*at.shape):
        step = np.zeros(at.shape)
        step[index] = 1e-6
        found[index] = (function(at + step) - function(at - step)) / 2e-6
    return found


@pytest.mark.parametrize("name", ["embedding", "recurrence", "head"])
def test_the_oracles_gradients_of_log_probs_are_slopes(name: str) -> None:
    rng = np.random.default_rng(0)
    cases = GENERATOR["cases"]
    inputs = {**cases.log_probs.network(rng, 7), **cases.log_probs.sequences(rng, 3, 4, 5, 7, padded=True)}
    upstream = rng.standard_normal((3, 5))
    found = ORACLE.log_probs_gradients(inputs, 4, upstream)[name]
    slopes = _slopes(lambda w: float((ORACLE.log_probs({**inputs, name: w}, 4) * upstream).sum()), inputs[name])
    np.testing.assert_allclose(found, slopes, atol=1e-7)


@pytest.mark.parametrize("normalization", ["token_mean", "sequence_mean", "constant_length"])
def test_the_oracles_gradients_of_the_loss_are_slopes(normalization: str) -> None:
    given = GENERATOR["cases"].loss.loss_inputs(np.random.default_rng(1), 4, 6)
    ref = given["log_probs"] + 0.3
    rest = (given["old_log_probs"], given["advantages"], given["mask"])
    options = {"normalization": normalization, "max_length": 9, "kl_coefficient": 0.4, "ref": ref}
    _, found = ORACLE.loss(given["log_probs"], *rest, **options)
    slopes = _slopes(lambda scored: ORACLE.loss(scored, *rest, **options)[0], given["log_probs"])
    np.testing.assert_allclose(found, slopes, atol=1e-8)


# By enumeration: every response of up to three tokens of a model whose vocabulary has five

END = 1


def _all_responses(length: int) -> list[tuple[int, ...]]:
    whole = [r for r in itertools.product(range(5), repeat=length) if END not in r]
    ended = [(*r, END) for n in range(length) for r in itertools.product(range(5), repeat=n) if END not in r]
    return [*ended, *whole]


def _enumerated(model: CausalLM, length: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and rewards of every response to one prompt of two tokens, padded at the left."""
    responses = _all_responses(length)
    ids = torch.zeros(len(responses), 3 + length, dtype=torch.long)
    mask = torch.zeros_like(ids)
    ids[:, 1:3], mask[:, 1:3] = torch.tensor([2, 4]), 1
    for row, response in enumerate(responses):
        ids[row, 3 : 3 + len(response)] = torch.tensor(response)
        mask[row, 3 : 3 + len(response)] = 1
    rewards = torch.tensor([float(sum(r) % 4) - len(r) / 8 for r in responses], dtype=torch.float64)
    return ids, mask, rewards


def _flat(gradients: Any) -> torch.Tensor:
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def test_the_probabilities_of_all_responses_sum_to_1(tiny: CausalLM) -> None:
    ids, mask, _ = _enumerated(tiny)
    total = compute_response_log_probs(tiny, ids, mask, 3).exp().sum()
    assert abs(total.item() - 1) < 1e-12


def test_the_losss_gradient_is_minus_that_of_the_expected_reward(tiny: CausalLM) -> None:
    """Each response weighted by its own probability: what sampling does on average, done exactly."""
    ids, mask, rewards = _enumerated(tiny)
    parameters = list(tiny.parameters())
    expected = (compute_response_log_probs(tiny, ids, mask, 3).exp() * rewards).sum()
    scored = compute_response_log_probs(tiny, ids, mask, 3, reduction="none")
    weights = scored.sum(dim=-1).exp().detach() * len(ids)
    loss = grpo_loss(
        scored, scored, weights * rewards, mask[:, 3:], normalization="constant_length", max_length=1, epsilon=0.2
    )
    right = _flat(torch.autograd.grad(expected, parameters, retain_graph=True))
    found = _flat(torch.autograd.grad(loss, parameters))
    assert float((found + right).abs().max()) < 1e-12


def test_the_penaltys_expectation_is_the_divergence_of_the_two_models(tiny: CausalLM) -> None:
    ids, mask, _ = _enumerated(tiny)
    torch.manual_seed(4)
    reference = CausalLM(tiny.config).double()
    scored, ref = (
        compute_response_log_probs(model, ids, mask, 3, reduction="none").detach() for model in (tiny, reference)
    )
    probabilities = scored.sum(dim=-1).exp()
    divergence = (probabilities * (scored.sum(dim=-1) - ref.sum(dim=-1))).sum()
    options: dict[str, Any] = {"normalization": "constant_length", "max_length": 1, "kl_coefficient": 1.0}
    found = sum(
        probability * grpo_loss(s[None], s[None], torch.zeros(1), m[None], ref_log_probs=r[None], **options)
        for probability, s, r, m in zip(probabilities, scored, ref, mask[:, 3:], strict=True)
    )
    assert abs(float(found - divergence)) < 1e-12


def test_the_group_means_gradient_shrinks_by_the_share_that_the_text_says() -> None:
    rewards = torch.tensor([[1.0, 4.0, 2.0, -1.0]], dtype=torch.float64)
    scale = group_advantages(rewards, "leave_one_out") / group_advantages(rewards, "mean")
    torch.testing.assert_close(scale, torch.full_like(scale, 4 / 3))


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


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_fills_the_side_that_was_asked_for(side: str) -> None:
    padded = TOKENIZER(["1+1", "12+34"], return_tensors="pt", padding=True, padding_side=side)
    row = padded.attention_mask[0].tolist()
    assert row == ([0, 0, 1, 1, 1] if side == "left" else [1, 1, 1, 0, 0])
    assert (padded.input_ids[0][padded.attention_mask[0] == 0] == TOKENIZER.pad_token_id).all()
    with pytest.raises(ValueError, match="several lengths"):
        TOKENIZER(["1+1", "12+34"], return_tensors="pt")


def test_padding_at_the_left_changes_no_prediction(tiny: CausalLM) -> None:
    ids = torch.tensor([[2, 4, 3, 2]])
    padded = torch.tensor([[0, 0, 2, 4, 3, 2]])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1]])
    torch.testing.assert_close(tiny(padded, attention_mask=mask).logits[:, 2:], tiny(ids).logits)


def test_a_token_sees_nothing_that_comes_after_it(tiny: CausalLM) -> None:
    before, after = torch.tensor([[2, 4, 3, 2]]), torch.tensor([[2, 4, 1, 1]])
    torch.testing.assert_close(tiny(before).logits[:, :2], tiny(after).logits[:, :2])


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


def test_a_mask_goes_up_to_the_end_token_that_one_included() -> None:
    ids = torch.tensor([[5, 1, 0, 0], [1, 0, 0, 0], [5, 6, 7, 8], [5, 1, 1, 9]])
    assert up_to_end(ids, 1).tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]


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


def test_problems_are_split_without_overlap_and_posed_in_turn() -> None:
    training, held_out = split_problems()
    assert (len(training), len(held_out), len(set(training) | set(held_out))) == (9_000, 1_000, 10_000)
    posed = list(problem_batches(training[:7], 5, 3, seed=1))
    assert sorted([*posed[0], *posed[1], posed[2][0]]) == sorted(training[:7])
    assert posed == list(problem_batches(training[:7], 5, 3, seed=1))
    assert posed != list(problem_batches(training[:7], 5, 3, seed=2))


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


def test_what_the_model_reads_is_right_or_wrong_as_often_as_the_text_says() -> None:
    import random

    rng = random.Random(0)
    problems = split_problems()[0][:1500]
    pairs = [tuple(int(part) for part in problem.split("+")) for problem in problems]
    for write, least, most in ((bare, 0.27, 0.34), (worked, 0.87, 0.95)):
        right = [is_correct(problem, write(*pair, rng)) for problem, pair in zip(problems, pairs, strict=True)]
        assert least < sum(right) / len(right) < most
    assert all(is_well_formed(worked(*pair, rng)) for pair in pairs)


@pytest.mark.long
def test_pretraining_gives_the_same_model_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    one, other, third = pretrain(2), pretrain(2), pretrain(2, seed=1)
    states = [torch.cat([w.reshape(-1) for w in model.state_dict().values()]) for model in (one, other, third)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_the_checkpoint_is_small_enough_for_a_repository() -> None:
    weights = CausalLM.from_pretrained(CHECKPOINT)
    assert 200_000 < sum(parameter.numel() for parameter in weights.parameters()) < 500_000
    assert sum(path.stat().st_size for path in CHECKPOINT.iterdir()) < 2**20


def test_a_model_that_is_saved_and_read_again_predicts_nearly_the_same(tiny: CausalLM, tmp_path: Path) -> None:
    tiny.float().save_pretrained(tmp_path / "a" / "b")
    again = CausalLM.from_pretrained(tmp_path / "a" / "b")
    ids = torch.tensor([[2, 3, 4]])
    torch.testing.assert_close(again(ids).logits, tiny(ids).logits, atol=2e-2, rtol=0)


# It learns


def test_a_few_steps_keep_records_and_draw_a_curve(tmp_path: Path, one_thread: None) -> None:
    options: dict[str, Any] = {"num_steps": 2, "num_prompts": 3, "num_responses": 4, "kl_coefficient": 0.1}
    problems, models = split_problems()[0], [CausalLM.from_pretrained(CHECKPOINT) for _ in range(2)]
    runs = [train(model, TOKENIZER, problems, **options, progress=False) for model in models]
    assert [(r.step, r.inner_step) for r in runs[0].records] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert runs[0].records == runs[1].records
    image, log = save_run(runs[0], tmp_path / "run")
    assert image.read_bytes().startswith(b"\x89PNG")
    assert len(log.read_text().splitlines()) == 5


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


# What is released


@pytest.mark.long  # in short: tests/authoring/test_release.py, with one assignment
def test_the_released_zip_works_alone(tmp_path: Path) -> None:
    (tmp_path / "grpo.zip").write_bytes(zip_bytes(handout_files(ASSIGNMENT), ASSIGNMENT.name))
    with zipfile.ZipFile(tmp_path / "grpo.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / ASSIGNMENT.name

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)

    untouched = run("-m", "autograder", "check")
    assert untouched.returncode == 1, untouched.stderr
    assert untouched.stdout.count("not implemented yet") >= 1
    shutil.copy(ASSIGNMENT.solution / "grpo_language_model.py", folder)
    finished = run("-m", "autograder", "check")
    assert finished.returncode == 0, finished.stdout
    trained = run("experiments.py", "--seeds", "0", "--steps", "1")
    assert trained.returncode == 0, trained.stderr
    assert (folder / "runs" / "learning_curves.png").is_file()


# Words on a fault that shows in several items


def test_a_cut_graph_is_not_put_down_to_the_padding_of_the_case_that_shows_it_again(sandbox: Sandbox) -> None:
    mistakes = generator_of("grpo_language_model")["mistakes"].MISTAKES
    cut = next(one for one in mistakes if one.slug == "graph-only-while-training")
    source = f"{solution_source(ASSIGNMENT)}\n\n{cut.source}"
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT), counterexamples=False)
    report = grader.grade(Submission("ada", "grpo_language_model.py", "", source), sandbox)
    found = {item.item: item for item in report.items if item.points != item.max_points}
    assert found.keys() == {"log-probs-gradient", "log-probs-padding"}
    assert found["log-probs-padding"].message.startswith("the gradient with respect to the model's embedding")
    assert found["log-probs-padding"].mistakes == ("graph-only-while-training",)

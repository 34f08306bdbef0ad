"""The oracle, held against numbers settled by hand and simple formulas; then the stored cases that hold its answers."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from all_assignments import generator_of
from hypothesis import given, settings
from hypothesis import strategies as st
from places import KIT

from autograder.grading.assignments import find_assignment
from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import compare
from autograder.grading.fixtures import read_fixtures
from autograder.sandbox.observation import Array, Observation, Raised

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
GENERATOR = generator_of(ASSIGNMENT.name)
oracle, MISTAKES = GENERATOR["oracle"], GENERATOR["mistakes"].MISTAKES
STORED = {case.id: case for case in read_fixtures(ASSIGNMENT).cases}
PUBLIC = {case.id: case for case in read_fixtures(ASSIGNMENT, hidden=False).cases}

MODES = ("rewards", "centered_rewards", "normalized_rewards", "max_rewards")
FREE = settings(deadline=None, max_examples=40)
SIZE = st.integers(1, 5)
SEED = st.integers(0, 2**32 - 1)


# Numbers settled by hand

PROMPT = [3, 1, 0, 2]


@pytest.mark.parametrize(
    ("response", "distance", "inclusion_ordering"),
    [([0, 1, 2, 3], 4, 7), ([7, 2, 2, 5], 1, 3), ([0, 3, 1, 2], 1, 6), ([3, 1, 0, 2], 1, 5)],
)
def test_the_lectures_responses_earn_what_it_says(
    response: list[int], distance: float, inclusion_ordering: float
) -> None:
    assert oracle.distance_reward(PROMPT, response) == distance
    assert oracle.inclusion_ordering_reward(PROMPT, response) == inclusion_ordering


def test_a_baseline_shrinks_the_spread_of_the_lectures_rewards() -> None:
    rewards = np.array([[11.0, 9.0], [0.0, 2.0]])
    assert oracle.sample_std(rewards) == pytest.approx(5.322906474223771, rel=1e-14)
    assert oracle.deltas(rewards, "centered_rewards").tolist() == [[1, -1], [-1, 1]]
    assert oracle.sample_std(oracle.deltas(rewards, "centered_rewards")) == pytest.approx(1.1547005383792515)


WALKTHROUGH = np.array([[3.0, 3.0, 3.0, 4.0, 3.0]])
WALKTHROUGH_DELTAS = {
    "rewards": [3, 3, 3, 4, 3],
    "centered_rewards": [-0.2, -0.2, -0.2, 0.8, -0.2],
    "normalized_rewards": [-0.4472037, -0.4472037, -0.4472037, 1.7888142, -0.4472037],
    "max_rewards": [0, 0, 0, 4, 0],
}
LIKELY, UNLIKELY = (-0.0156721, -0.8296878, -0.0515060), (-0.0156721, -1.0051248, -0.0515060)
WALKTHROUGH_LOG_PROBS = np.array([[UNLIKELY, LIKELY, LIKELY, (*UNLIKELY[:2], -2.9921899), LIKELY]])


@pytest.mark.parametrize("mode", MODES)
def test_the_recorded_deltas_come_out(mode: str) -> None:
    assert oracle.deltas(WALKTHROUGH, mode)[0] == pytest.approx(WALKTHROUGH_DELTAS[mode], rel=3e-7)


RECORDED_LOSSES = {
    "rewards": 1.8227099,
    "centered_rewards": 0.1638539,
    "normalized_rewards": 0.3663804,
    "max_rewards": 1.0701297521591187,
}


@pytest.mark.parametrize(("mode", "recorded"), RECORDED_LOSSES.items())
def test_the_recorded_losses_come_out(mode: str, recorded: float) -> None:
    loss, _ = oracle.loss(WALKTHROUGH_LOG_PROBS, oracle.deltas(WALKTHROUGH, mode), "naive")
    assert loss == pytest.approx(recorded, rel=4e-7)  # the log-probs were recorded to seven digits


def toy_ratio(weight: float, frozen: float) -> float:
    """The ratio of p = sigmoid(weight) to the policy at `frozen`, as the unclipped loss of a delta of 1."""
    new, old = (np.full((1, 1, 1), -math.log1p(math.exp(-w))) for w in (weight, frozen))
    loss, _ = oracle.loss(new, np.ones((1, 1)), "unclipped", old)
    return -loss


def test_a_frozen_ratio_has_the_slope_1_minus_p_and_an_unfrozen_one_none() -> None:
    step = 1e-5
    frozen = (toy_ratio(2 + step, 2) - toy_ratio(2 - step, 2)) / (2 * step)
    unfrozen = (toy_ratio(2 + step, 2 + step) - toy_ratio(2 - step, 2 - step)) / (2 * step)
    assert toy_ratio(2, 2) == 1
    assert frozen == pytest.approx(0.119202922022118, abs=1e-9)
    assert unfrozen == 0


# ratio, then objective and slope (in log_probs) for delta +1 and for delta -1
CLIP_TABLE = (
    (0.5, 0.5, 0.5, -0.8, 0.0),
    (0.7, 0.7, 0.7, -0.8, 0.0),
    (0.9, 0.9, 0.9, -0.9, -0.9),
    (1.0, 1.0, 1.0, -1.0, -1.0),
    (1.1, 1.1, 1.1, -1.1, -1.1),
    (1.5, 1.2, 0.0, -1.5, -1.5),
    (2.0, 1.2, 0.0, -2.0, -2.0),
)


@pytest.mark.parametrize(("ratio", "up", "up_slope", "down", "down_slope"), CLIP_TABLE)
def test_the_clip_is_the_worked_table(ratio: float, up: float, up_slope: float, down: float, down_slope: float) -> None:
    old = np.full((1, 1, 1), -1.25)
    for delta, objective, slope in ((1.0, up, up_slope), (-1.0, down, down_slope)):
        loss, gradient = oracle.loss(old + math.log(ratio), np.full((1, 1), delta), "clipped", old, 0.2)
        assert -loss == pytest.approx(objective, rel=1e-14)
        assert -gradient.item() == pytest.approx(slope, rel=1e-14)


@given(SEED, SIZE, SIZE, SIZE)
@FREE
def test_the_penalty_of_two_equal_models_is_0_and_pulls_nowhere(seed: int, batch: int, trial: int, pos: int) -> None:
    log_probs = np.random.default_rng(seed).uniform(-900, 0, (batch, trial, pos))
    penalty, gradient = oracle.kl(log_probs, log_probs.copy())
    assert penalty == 0
    assert not gradient.any()


# Any size, against formulas over whole arrays


@given(SEED, SIZE, SIZE, SIZE, SIZE)
@FREE
def test_rewards_stand_where_their_prompt_and_response_stand(
    seed: int, batch: int, trial: int, pos: int, prompt_pos: int
) -> None:
    rng = np.random.default_rng(seed)
    prompts, responses = rng.integers(0, 9, (batch, prompt_pos)), rng.integers(0, 9, (batch, trial, pos))
    place = 10.0 ** np.arange(pos)
    found = oracle.reward(
        prompts, responses, lambda p, r: sum(t * 10.0**k for k, t in enumerate(r)) - p[0] / 2 - p[-1] / 4
    )
    assert np.array_equal(found, responses @ place - (prompts[:, 0] / 2 + prompts[:, -1] / 4)[:, None])


@given(SEED, SIZE, st.integers(2, 7), st.sampled_from(MODES))
@FREE
def test_deltas_are_those_of_the_formula(seed: int, batch: int, trial: int, mode: str) -> None:
    rewards = np.random.default_rng(seed).integers(-6, 7, (batch, trial)) / 4
    centered = rewards - rewards.mean(axis=1, keepdims=True)
    wanted = {
        "rewards": rewards,
        "centered_rewards": centered,
        "normalized_rewards": centered / (rewards.std(axis=1, ddof=1, keepdims=True) + 1e-5),
        "max_rewards": np.where(rewards == rewards.max(axis=1, keepdims=True), rewards, 0),
    }[mode]
    np.testing.assert_allclose(oracle.deltas(rewards, mode), wanted, rtol=1e-12, atol=1e-10)


@given(SEED, st.integers(2, 20))
@FREE
def test_the_sample_spread_is_numpys_with_one_degree_of_freedom(seed: int, count: int) -> None:
    values = np.random.default_rng(seed).normal(3, 2, count)
    assert oracle.sample_std(values) == pytest.approx(values.std(ddof=1), rel=1e-12)


def small_policy(
    seed: int, batch: int, trial: int, pos: int, vocab: int, scale: float = 1.0
) -> tuple[Array, Array, dict[str, Array]]:
    """Prompts of three tokens, responses, and the weights of a model of dimension 4."""
    rng = np.random.default_rng(seed)
    weights = {
        "embedding.weight": scale * rng.standard_normal((vocab, 4)),
        "encode_weights": rng.standard_normal((3, 4, 4)) / 2,
        "decode_weights": rng.standard_normal((pos, 4, 4)) / 2,
    }
    return rng.integers(0, vocab, (batch, 3)), rng.integers(0, vocab, (batch, trial, pos)), weights


def logits_of(prompts: Array, weights: dict[str, Array]) -> Array:
    """The model in matrix products: one prompt and one position at a time."""
    embedding, encode, decode = (weights[name] for name in oracle.PARAMETERS)
    rows = []
    for prompt in prompts:
        encoded = sum(embedding[token] @ matrix for token, matrix in zip(prompt, encode, strict=True))
        rows.append([embedding @ (encoded @ matrix) for matrix in decode])
    return np.array(rows)


@given(SEED, SIZE, SIZE, SIZE, st.integers(1, 7), st.sampled_from([1.0, 6.0]))
@FREE
def test_log_probs_are_log_softmax_at_the_sampled_token(
    seed: int, batch: int, trial: int, pos: int, vocab: int, scale: float
) -> None:
    prompts, responses, weights = small_policy(seed, batch, trial, pos, vocab, scale)
    logits = logits_of(prompts, weights)
    log_softmax = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    index = np.arange(batch)[:, None, None], np.arange(pos), responses
    size = max(1.0, float(np.abs(logits).max()))
    np.testing.assert_allclose(
        oracle.log_probs(prompts, responses, weights), log_softmax[index], rtol=1e-12, atol=1e-12 * size
    )


def test_the_probabilities_of_all_responses_sum_to_1() -> None:
    responses = np.array([list(itertools.product(range(4), repeat=3))] * 2)
    prompts, _, weights = small_policy(7, 2, 1, 3, 4)
    likelihoods = np.exp(oracle.log_probs(prompts, responses, weights).sum(axis=-1)).sum(axis=-1)
    assert likelihoods == pytest.approx([1, 1], rel=1e-13)


def scored(seed: int, batch: int, trial: int, pos: int) -> tuple[Array, Array, Array]:
    """Log-probs, deltas of any sign with some zeros, and old log-probs at ratios from 0.2 to 5."""
    rng = np.random.default_rng(seed)
    log_probs = rng.uniform(-5, 0, (batch, trial, pos))
    deltas = rng.integers(-4, 5, (batch, trial)) / 2
    return log_probs, deltas, log_probs - rng.uniform(-1.6, 1.6, log_probs.shape)


@given(SEED, SIZE, SIZE, SIZE, st.sampled_from(["naive", "unclipped", "clipped"]), st.floats(0.01, 0.9))
@FREE
def test_losses_are_those_of_the_formula(
    seed: int, batch: int, trial: int, pos: int, mode: str, epsilon: float
) -> None:
    log_probs, deltas, old = scored(seed, batch, trial, pos)
    delta, ratio = deltas[:, :, None], np.exp(log_probs - old)
    objective = {
        "naive": delta * log_probs,
        "unclipped": ratio * delta,
        "clipped": np.minimum(ratio * delta, np.clip(ratio, 1 - epsilon, 1 + epsilon) * delta),
    }[mode]
    loss, _ = oracle.loss(log_probs, deltas, mode, None if mode == "naive" else old, epsilon)
    assert loss == pytest.approx(-objective.mean(), rel=1e-12, abs=1e-13)


@given(SEED, SIZE, SIZE, SIZE)
@FREE
def test_the_penalty_is_that_of_the_formula_and_never_negative(seed: int, batch: int, trial: int, pos: int) -> None:
    log_probs, _, ref = scored(seed, batch, trial, pos)
    penalty, _ = oracle.kl(log_probs, ref)
    estimate = np.exp(ref - log_probs) - (ref - log_probs) - 1
    assert penalty == pytest.approx(estimate.sum(axis=2).mean(), rel=1e-12)
    assert penalty >= 0


# Gradients, against central differences


def slopes(function: Callable[[Array], float], at: Array, step: float = 1e-6) -> Array:
    """The gradient of a function of one array, by central differences."""
    found = np.zeros_like(at)
    for index in np.ndindex(*at.shape):
        change = np.zeros_like(at)
        change[index] = step
        found[index] = (function(at + change) - function(at - change)) / (2 * step)
    return found


@given(SEED, st.sampled_from(["naive", "unclipped", "clipped"]))
@FREE
def test_the_losss_gradient_is_its_slope(seed: int, mode: str) -> None:
    log_probs, deltas, old = scored(seed, 2, 4, 3)
    near_a_kink = np.abs(np.exp(log_probs - old)[..., None] - [0.8, 1.2]).min(axis=-1) < 1e-4
    old = np.where(near_a_kink, old - 0.01, old)
    _, gradient = oracle.loss(log_probs, deltas, mode, old, 0.2)
    found = slopes(lambda moved: oracle.loss(moved, deltas, mode, old, 0.2)[0], log_probs)
    np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-8)


@given(SEED)
@FREE
def test_the_penaltys_gradient_is_its_slope(seed: int) -> None:
    log_probs, _, ref = scored(seed, 2, 4, 3)
    found = slopes(lambda moved: oracle.kl(moved, ref)[0], log_probs)
    np.testing.assert_allclose(oracle.kl(log_probs, ref)[1], found, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", oracle.PARAMETERS)
def test_the_gradient_of_log_probs_is_their_slope_in_every_parameter(name: str) -> None:
    prompts, responses, weights = small_policy(11, 2, 4, 3, 5)
    upstream = np.linspace(-1, 2, responses.size).reshape(responses.shape)

    def weighted(moved: Array) -> float:
        return float((upstream * oracle.log_probs(prompts, responses, {**weights, name: moved})).sum())

    gradient = oracle.log_probs_gradients(prompts, responses, weights, upstream)[name]
    assert np.abs(gradient).max() > 0.1
    np.testing.assert_allclose(gradient, slopes(weighted, weights[name]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mode", ["naive", "unclipped", "clipped"])
def test_the_gradients_of_the_loops_stand_ins_are_their_slopes(mode: str) -> None:
    scores, deltas, old = scored(5, 2, 4, 3)
    chosen = {"loss_mode": mode, "epsilon": 0.3}
    _, by_scores = oracle._stand_in_loss(scores, deltas, old, chosen)
    found = slopes(lambda moved: oracle._stand_in_loss(moved, deltas, old, chosen)[0], scores)
    np.testing.assert_allclose(by_scores, found, rtol=1e-6, atol=1e-8)
    _, by_scores = oracle._stand_in_kl(scores, old)
    found = slopes(lambda moved: oracle._stand_in_kl(moved, old)[0], scores)
    np.testing.assert_allclose(by_scores, found, rtol=1e-6, atol=1e-8)


# The loop


LOOP_SETTINGS = {
    "num_epochs": 4,
    "num_steps_per_epoch": 3,
    "num_responses": 4,
    "compute_ref_model_period": 2,
    "deltas_mode": "centered_rewards",
    "loss_mode": "unclipped",
    "learning_rate": 0.01,
}


def trained(**changed: Any) -> dict[str, Array]:
    prompts, _, weights = small_policy(3, 2, 4, 3, 7)
    responses = np.random.default_rng(4).integers(0, 7, (4, 2, 4, 3))
    inputs = {**weights, "prompts": prompts, "responses": responses}
    return oracle.run(inputs, {**LOOP_SETTINGS, **changed})


def differ(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return any(not np.array_equal(one[name], other[name]) for name in one if name.startswith("weights"))


def test_a_penalty_acts_only_once_the_model_has_left_its_reference() -> None:
    free = trained(num_steps_per_epoch=1)
    assert not differ(free, trained(num_steps_per_epoch=1, compute_ref_model_period=1, kl_penalty=0.5))
    assert differ(free, trained(num_steps_per_epoch=1, compute_ref_model_period=2, kl_penalty=0.5))


def test_the_first_reference_is_the_initial_model() -> None:
    for steps, pulls in ((1, False), (2, True)):
        runs = (trained(num_epochs=1, num_steps_per_epoch=steps, kl_penalty=beta) for beta in (0.0, 0.5))
        assert differ(*runs) == pulls


def test_a_reference_lasts_until_its_period_is_over() -> None:
    for epochs, refreshed in ((2, False), (3, True)):
        runs = (trained(num_epochs=epochs, kl_penalty=0.5, compute_ref_model_period=p) for p in (2, 5))
        assert differ(*runs) == refreshed


def test_without_a_penalty_the_period_does_not_matter() -> None:
    assert not differ(trained(), trained(compute_ref_model_period=3))
    assert differ(trained(kl_penalty=0.5), trained(kl_penalty=0.5, compute_ref_model_period=3))


def test_with_one_step_an_epoch_nothing_is_clipped() -> None:
    assert not differ(*(trained(num_steps_per_epoch=1, loss_mode=mode) for mode in ("unclipped", "clipped")))
    assert differ(*(trained(loss_mode=mode) for mode in ("unclipped", "clipped")))


def test_records_number_every_step_of_the_run_and_carry_the_epochs_mean_reward() -> None:
    rewards = np.random.default_rng(5).uniform(-1, 5, (4, 2, 4))
    inputs = {"rewards": rewards, "losses": np.arange(12.0), "penalties": np.full(12, 2.0)}
    found = oracle.records(inputs, {**LOOP_SETTINGS, "kl_penalty": 0.25})
    assert found["epoch"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert found["step"].tolist() == list(range(12))
    assert found["loss"].tolist() == [step + 0.5 for step in range(12)]
    assert found["mean_reward"] == pytest.approx(rewards.mean(axis=(1, 2)).repeat(3), rel=1e-14)


def test_a_small_step_lowers_the_loss_on_the_same_responses() -> None:
    prompts, _, weights = small_policy(3, 2, 4, 3, 7)
    responses = np.random.default_rng(4).integers(0, 7, (2, 4, 3))
    deltas = oracle.FACTORS[0] * (oracle._stand_in_rewards(prompts, responses) - oracle.DELTAS["centered_rewards"][1])
    old = oracle._scores(oracle.Network(weights), prompts, responses)
    losses = []
    for steps in range(5):
        found = trained(num_epochs=1, num_steps_per_epoch=steps, learning_rate=1e-3)
        moved = {name: found[f"weights {name}"] for name in oracle.PARAMETERS}
        scores = oracle._scores(oracle.Network({**weights, **moved}), prompts, responses)
        losses.append(oracle._stand_in_loss(scores, deltas, old, LOOP_SETTINGS)[0])
    assert (np.diff(losses) < 0).all()


def test_adams_first_step_moves_every_weight_by_the_learning_rate_against_its_gradient() -> None:
    weights = {"w": np.array([1.0, 2.0, 3.0])}
    adam = oracle.Adam(weights, 0.01)
    adam.step({"w": np.array([5.0, -0.1, 1e3])})
    assert weights["w"] == pytest.approx([0.99, 2.01, 2.99], abs=1e-7)


# The named numbers, as students get them


def expected_of(case: Case, name: str) -> Array:
    array = expectation(case, name).array
    assert array is not None
    return array


def expectation(case: Case, name: str) -> Expectation:
    return next(entry for entry in case.expected if entry.name == name)


def given_of(case: Case) -> dict[str, Any]:
    """What a call is given beside tensors."""
    found: dict[str, Any] = case.params.get("given", {})
    return found


def old_of(case: Case) -> str:
    """Where the old log-probs of a call come from."""
    alias = case.params.get("aliases", {}).get("old_log_probs", {})
    own = "graph" if "plus" in alias else "shared" if alias else "given"
    return own if "old_log_probs" in case.params["arguments"] else "none"


@pytest.mark.parametrize(
    ("case", "name", "numbers", "relative"),
    [
        ("reward-distance", "rewards", [[4, 1, 1]], 0),
        ("reward-inclusion-ordering", "rewards", [[7, 3, 6]], 0),
        ("baseline-5.323-1.155", "deltas", [[1, -1], [-1, 1]], 0),
        ("deltas-centered-walkthrough", "deltas", [WALKTHROUGH_DELTAS["centered_rewards"]], 1e-14),
        ("deltas-normalized-walkthrough", "deltas", [WALKTHROUGH_DELTAS["normalized_rewards"]], 3e-7),
        ("deltas-max-walkthrough", "deltas", [WALKTHROUGH_DELTAS["max_rewards"]], 0),
        ("loss-naive-walkthrough", "loss", 1.0701297521591187, 1e-7),
        ("frozen-ratio-sigmoid", "loss", -1, 0),
        ("frozen-ratio-sigmoid", "gradient weight", -0.119202922022118, 1e-14),
    ],
)
def test_a_named_number_is_a_public_stored_case(case: str, name: str, numbers: Any, relative: float) -> None:
    stored = expected_of(PUBLIC[case], name)
    assert stored.shape == np.shape(numbers)
    np.testing.assert_allclose(stored, numbers, rtol=max(relative, 1e-15))


@pytest.mark.parametrize(
    ("case", "name", "numbers"),
    [
        ("reward-distance", "prompts", [PROMPT]),
        ("reward-inclusion-ordering", "responses", [[[0, 1, 2, 3], [7, 2, 2, 5], [0, 3, 1, 2]]]),
        ("baseline-5.323-1.155", "rewards", [[11, 9], [0, 2]]),
        ("deltas-centered-walkthrough", "rewards", WALKTHROUGH),
        ("loss-naive-walkthrough", "log_probs", WALKTHROUGH_LOG_PROBS),
        ("loss-naive-walkthrough", "deltas", [WALKTHROUGH_DELTAS["max_rewards"]]),
        ("frozen-ratio-sigmoid", "weight", 2),
    ],
)
def test_a_named_case_has_the_inputs_that_its_numbers_belong_to(case: str, name: str, numbers: Any) -> None:
    assert np.array_equal(PUBLIC[case].inputs[name], numbers)


@pytest.mark.parametrize(("case", "delta"), [("clip-table-above-0", 1.0), ("clip-table-below-0", -1.0)])
def test_the_clip_table_is_stored_row_by_row(case: str, delta: float) -> None:
    stored = PUBLIC[case]
    ratios = ratios_of(stored).reshape(-1)
    rows = {row[0]: row[1:3] if delta > 0 else row[3:5] for row in CLIP_TABLE}
    found = [rows[round(float(ratio), 9)] for ratio in ratios]
    assert stored.inputs["deltas"].item() == delta
    assert expected_of(stored, "loss") == pytest.approx(-sum(row[0] for row in found) / len(ratios), rel=1e-12)
    gradient = expected_of(stored, "gradient log_probs").reshape(-1)
    assert gradient == pytest.approx([-row[1] / len(ratios) for row in found], rel=1e-12)
    assert Counter(place(float(ratio), 0.2) for ratio in ratios) == {"below": 2, "inside": 2, "above": 2}


# What the stored set must hold: each demand is there because known mistakes survive without it


def ratios_of(case: Case) -> Array:
    new, old = (case.inputs[name].astype(np.float64) for name in ("log_probs", "old_log_probs"))
    return np.asarray(np.exp(new - old))


def place(ratio: float, epsilon: float) -> str:
    return "below" if ratio < 1 - epsilon else "above" if ratio > 1 + epsilon else "inside"


def of_item(*items: str) -> list[Case]:
    """The cases of these items in which more is judged than the parameters' names."""
    return [case for case in STORED.values() if case.item in items and not case.id.endswith("-by-name")]


def of_function(function: str) -> list[Case]:
    """The cases of a function in which more is judged than its parameters' names."""
    return [case for case in STORED.values() if case.function == function and not case.id.endswith("-by-name")]


def each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


def tensors_of(case: Case) -> list[Expectation]:
    return [entry for entry in case.expected if entry.kind in ("value", "gradient")]


# Sizes that may be equal, and why.
EQUAL_SIZES = {
    "reward-distance": "the given rewards compare a response with its whole prompt",
    "reward-inclusion-ordering": "the given rewards compare a response with its whole prompt",
    "reward-distance-other": "the given rewards compare a response with its whole prompt",
    "reward-inclusion-ordering-other": "the given rewards compare a response with its whole prompt",
    "baseline-5.323-1.155": "two states and two actions, as in the lecture",
    "baseline-other": "two states and two actions, as in the lecture",
    "log-probs-one-of-each": "all sizes are 1",
    "log-probs-one-response": "one response of one token",
    **{
        case.id: "one response of one prompt: where it stands is not its item's business"
        for case in of_item("log-probs-peaked")
    },
    "kl-one-of-each": "one response of one prompt",
    "clip-table-above-0": "one response",
    "clip-table-below-0": "one response",
    "clip-table-other-above-0": "one response",
    "clip-table-other-below-0": "one response",
    "frozen-ratio-sigmoid": "one token",
    **{case.id: "the loop's prompts and responses are equally long" for case in of_function("run_policy_gradient")},
}


def sizes_of(case: Case) -> list[int]:
    """The size of each axis that the case's inputs have, each axis once."""
    shapes = {name: array.shape for name, array in case.inputs.items()}
    if "responses" in shapes:
        vocab_and_dim = shapes.get("embedding.weight", ())
        return [*shapes["responses"], shapes["prompts"][1], *vocab_and_dim]
    return list(shapes.get("log_probs", shapes.get("rewards", ())))


@each([case for case in STORED.values() if case.id not in EQUAL_SIZES and not case.id.endswith("-by-name")])
def test_all_axes_of_a_case_have_different_sizes(case: Case) -> None:
    sizes = sizes_of(case)
    assert len(sizes) >= 2
    assert len(set(sizes)) == len(sizes)


@each([STORED[name] for name in EQUAL_SIZES])
def test_only_where_sizes_are_equal_is_a_reason_needed(case: Case) -> None:
    sizes = sizes_of(case) or [1, 1]
    assert len(set(sizes)) < len(sizes)


@each(list(STORED.values()))
def test_every_expected_tensor_is_finite_and_well_above_its_tolerance(case: Case) -> None:
    assert case.expected
    for entry in tensors_of(case):
        assert entry.array is not None
        assert np.isfinite(entry.array).all()
        assert agrees(case) or np.abs(entry.array).max() >= 10 * entry.atol


def agrees(case: Case) -> bool:
    """Whether its two policies are the same, so that nothing but 0 is right."""
    return "ref_log_probs" in case.inputs and np.array_equal(case.inputs["log_probs"], case.inputs["ref_log_probs"])


@each(list(STORED.values()))
def test_no_tolerance_of_a_case_lets_a_stored_mistake_pass(case: Case) -> None:
    for slug, mistake in case.mistakes.items():
        if isinstance(mistake, Raised):
            continue
        assert isinstance(mistake, Observation)
        held = [entry for entry in case.expected if entry.name in {*mistake.returned, *mistake.facts}]
        assert compare(held, mistake) is not None, slug


def test_every_known_mistake_is_told_from_a_right_answer_by_a_case_of_its_function() -> None:
    separated = {(slug, case.function) for case in STORED.values() for slug in case.mistakes}
    assert separated == {(mistake.slug, mistake.function) for mistake in MISTAKES}


@pytest.mark.parametrize("function", ASSIGNMENT.functions)
def test_every_function_has_public_and_hidden_cases(function: str) -> None:
    assert {case.visibility for case in of_function(function)} == {"public", "hidden"}


# Rewards and deltas


def rows_of(*cases: str) -> list[list[float]]:
    return [row for name in cases for row in STORED[name].inputs["rewards"].tolist()]


@each(of_item("deltas-max"))
def test_a_maximum_is_tied_negative_lone_or_nearly_reached(case: Case) -> None:
    rows = case.inputs["rewards"].tolist()
    tied = [row for row in rows if row.count(max(row)) > 1]
    negative = [row for row in rows if max(row) < 0]
    near = [row for row in rows if 0 < max(row) - sorted(row)[-2] < 1e-5 * max(row)]
    assert bool(tied) == bool(negative) == (case.id in ("deltas-max-small", "deltas-max-wide"))
    assert bool(near) == ("near" in case.id)


@pytest.mark.parametrize("case", ["deltas-constant-group-small", "deltas-constant-group-wide"])
def test_constant_groups_are_dyadic_so_that_their_deltas_are_exactly_0(case: str) -> None:
    constant = [row for row in rows_of(case) if len(set(row)) == 1]
    assert constant
    assert len(constant) < len(rows_of(case))
    assert all((reward * 64).is_integer() for row in constant for reward in row)
    deltas = expected_of(STORED[case], "deltas").tolist()
    assert deltas.count([0.0] * len(constant[0])) == len(constant)


def test_constant_groups_are_of_both_signs_beside_a_sparse_one() -> None:
    rows = rows_of("deltas-constant-group-small")
    assert {math.copysign(1, row[0]) for row in rows if len(set(row)) == 1} == {1, -1}
    assert any(sorted(row) == [0, 0, 0, 0, 1] for row in rows)


def test_a_tiny_spread_makes_every_other_small_constant_visible() -> None:
    case = STORED["deltas-tiny-spread"]
    spreads = case.inputs["rewards"].std(axis=1, ddof=1)
    assert (spreads < 20 * oracle.EPS).sum() == 3
    slugs = {"no-eps", "eps-1e-8", "eps-1e-4", "eps-1e-6", "eps-inside-root", "eps-as-floor"}
    assert slugs <= set(case.mistakes)


WITH_DELTAS = [
    case for case in of_function("compute_deltas") if case.item != "deltas-dtype"
]  # whose values none judges


@each(
    [case for case in WITH_DELTAS if case.item not in ("baseline-example", "deltas-errors") and "walk" not in case.id]
)
def test_prompts_of_a_case_have_different_mean_rewards(case: Case) -> None:
    means = case.inputs["rewards"].mean(axis=1)
    assert len(set(means.tolist())) > 1


def test_every_mode_of_deltas_meets_negative_rewards() -> None:
    cases = [case for case in of_function("compute_deltas") if (case.inputs["rewards"] < 0).any()]
    assert {given_of(case).get("mode") for case in cases} >= set(MODES)


def test_reward_functions_are_of_every_kind_that_a_careless_call_breaks() -> None:
    kinds = {case.params["reward_fn"] for case in of_function("compute_reward") if "reward_fn" in case.params}
    assert kinds >= {"weighted", "shared_tokens", "negative", "scribbling", "whole", "distance", "inclusion_ordering"}
    raised = {case.params["failing"]["kind"] for case in of_function("compute_reward") if "failing" in case.params}
    assert raised == {"KeyError", "AssertionError"}


def test_it_is_noted_with_what_and_how_often_the_reward_function_is_called() -> None:
    noted = [entry for case in of_item("reward-lists") for entry in case.expected if entry.kind == "fact"]
    assert {entry.name for entry in noted} == {"arguments", "calls", "changed"}
    assert all(entry.value == ["list[int]"] for entry in noted if entry.name == "arguments")


def test_rewards_are_fractional_and_negative_where_they_should_be() -> None:
    rewards = expected_of(STORED["reward-negative"], "rewards")
    assert (rewards < 0).any()
    assert (rewards % 1 != 0).any()


def test_the_same_responses_earn_differently_under_different_prompts() -> None:
    case = STORED["reward-same-responses"]
    assert (case.inputs["responses"] == case.inputs["responses"][:1]).all()
    assert len(np.unique(expected_of(case, "rewards"), axis=0)) == len(case.inputs["prompts"])


@each([case for case in of_function("compute_reward") if case.id not in EQUAL_SIZES and case.id != "reward-sets"])
def test_no_two_rewards_of_a_row_and_no_two_rows_are_interchangeable(case: Case) -> None:
    rewards = expected_of(case, "rewards")
    assert len(np.unique(rewards)) > max(rewards.shape) - (len(rewards) == 1)


# Losses


RATIO_CASES = [case for case in of_function("compute_loss") if old_of(case) == "given"]
CLIPPED = [case for case in RATIO_CASES if given_of(case)["mode"] == "clipped"]


@each(CLIPPED)
def test_no_ratio_lies_on_a_bound_or_is_1(case: Case) -> None:
    epsilon, ratios = given_of(case).get("epsilon", 0.2), ratios_of(case)
    for bound in (1 - epsilon, 1, 1 + epsilon):
        assert np.abs(ratios - bound).min() > 1e-3


def signs_and_places(case: Case) -> set[tuple[float, str]]:
    """The combinations of a delta's sign and its ratio's place that occur in a clipped case."""
    epsilon, signs = given_of(case).get("epsilon", 0.2), np.sign(case.inputs["deltas"])
    return {(float(signs[b, t]), place(float(ratio), epsilon)) for (b, t, _), ratio in np.ndenumerate(ratios_of(case))}


@each([case for case in CLIPPED if case.item == "loss-clipped" and not re.search("far|zero|epsilon-0", case.id)])
def test_both_signs_of_delta_meet_ratios_below_inside_and_above(case: Case) -> None:
    there = ["below", "above"] if given_of(case).get("epsilon") == 0.01 else ["below", "inside", "above"]
    assert signs_and_places(case) >= set(itertools.product((-1.0, 1.0), there))


@pytest.mark.parametrize("item", ["loss-naive", "loss-unclipped", "loss-clipped"])
def test_deltas_have_both_signs_and_several_sizes(item: str) -> None:
    deltas = [c.inputs["deltas"] for c in of_item(item) if not re.search("walkthrough|zero-deltas|far", c.id)]
    assert all({-1, 1} <= set(np.sign(one).reshape(-1).tolist()) for one in deltas)
    assert all(len(np.unique(np.abs(one))) >= 4 for one in deltas)


def test_a_delta_of_0_stands_among_others_in_every_mode() -> None:
    deltas = {case.id: case.inputs["deltas"] for case in of_function("compute_loss") if case.inputs["deltas"].any()}
    mixed = {name for name, one in deltas.items() if (one == 0).any()}
    assert len(mixed) >= 2
    assert {given_of(STORED[name])["mode"] for name in mixed} == {"naive", "unclipped", "clipped"}


def test_the_clip_has_the_default_epsilon_and_others() -> None:
    epsilons = {given_of(case).get("epsilon") for case in of_item("loss-clipped")}
    assert None in epsilons
    assert {0.01, 0.35} <= epsilons


@pytest.mark.parametrize(
    ("name", "share"),
    [("frozen-ratio-shared", 1.0), ("frozen-ratio-clipped", 1.0), ("frozen-ratio-graph", None)],
)
def test_old_log_probs_of_the_same_graph_are_constants(name: str, share: float | None) -> None:
    case = STORED[name]
    log_probs, deltas = case.inputs["log_probs"], case.inputs["deltas"][:, :, None]
    ratio = np.exp(log_probs - (0.875 * log_probs - 0.25)) if share is None else np.ones_like(log_probs)
    assert expected_of(case, "loss") == pytest.approx(-(ratio * deltas).mean(), rel=1e-12)
    assert expected_of(case, "gradient log_probs") == pytest.approx(-ratio * deltas / log_probs.size, rel=1e-12)


def test_graphs_are_shared_in_every_way_that_a_caller_might() -> None:
    shared = [(given_of(case)["mode"], old_of(case)) for case in of_item("frozen-ratio")]
    assert {("unclipped", "shared"), ("clipped", "shared"), ("unclipped", "graph")} <= set(shared)
    assert [case.id for case in of_function("compute_loss") if "deltas" in case.params.get("graphs", {})]
    assert all(case.params["constants"] == ["ref_log_probs"] for case in of_item("kl-reference-frozen"))


@each([case for case in (*of_item("loss-extreme"), *of_item("kl-extreme")) if "far" not in case.id])
def test_extreme_log_probs_have_no_exponential(case: Case) -> None:
    log_probs = case.inputs["log_probs"]
    assert not np.exp(log_probs).any()
    assert np.abs(expected_of(case, "loss" if "loss" in case.id else "kl")) > 1e-3


def test_extreme_log_probs_stand_in_every_loss_mode_and_both_dtypes() -> None:
    assert {given_of(case)["mode"] for case in of_item("loss-extreme")} == {"naive", "unclipped", "clipped"}
    assert {case.inputs["log_probs"].dtype.name for case in of_item("kl-extreme")} == {"float32", "float64"}


@each(of_item("log-probs-peaked"))
def test_a_peaked_model_gives_log_probs_that_no_small_constant_survives(case: Case) -> None:
    assert expected_of(case, "log_probs").min() < -50


# Gradients, protocol, precision


NO_GRADIENT = ("loss-dtype", "loss-errors")


@each([c for c in of_function("compute_loss") if c.probe != "zero_deltas" and c.item not in NO_GRADIENT])
def test_every_loss_is_attached_and_has_its_gradient(case: Case) -> None:
    assert expectation(case, "loss").attached
    assert np.abs(expected_of(case, f"gradient {case.params['leaves'][0]}")).max() > 0


@each([*of_item("log-probs-gradient"), *of_item("log-probs-peaked")])
def test_log_probs_have_a_gradient_in_every_parameter_under_uneven_weights(case: Case) -> None:
    assert len(np.unique(case.inputs["upstream"])) == case.inputs["upstream"].size
    for name in oracle.PARAMETERS:
        assert expected_of(case, f"gradient {name}").shape == case.inputs[name].shape


@each(of_item("kl-gradient"))
def test_penalties_are_attached_and_have_their_gradient(case: Case) -> None:
    assert expectation(case, "kl").attached
    assert (np.abs(expected_of(case, "gradient log_probs")).max() > 0) != agrees(case)


def test_log_probs_are_attached_where_their_gradient_is_judged_and_rewards_are_not() -> None:
    judged = [*of_item("log-probs-gradient"), *of_item("log-probs-peaked")]
    assert {expectation(case, "log_probs").attached for case in judged} == {True}
    graphs = [e.value for c in of_item("reward-contract") for e in c.expected if e.name == "graph"]
    assert graphs == [False, False]


ERRORS = [case for case in STORED.values() if "raises" in case.params]
NO_ARGUMENTS = {"upstream", "weight"}  # what a case is made of besides


@pytest.mark.parametrize("function", [name for name in ASSIGNMENT.functions if name != "run_policy_gradient"])
def test_some_case_sees_to_it_that_no_argument_changes(function: str) -> None:
    cases = of_function(function)
    kept = [(c.id, e) for c in cases for e in c.expected if e.kind == "unchanged"]
    watched = {(e.name.removesuffix(" afterwards"), case): e.array for case, e in kept}
    assert {name for name, _ in watched} >= {name for case in cases for name in case.inputs} - NO_ARGUMENTS
    for (name, case), array in watched.items():
        given_as = STORED[case].inputs.get(name)
        assert given_as is None or array is None or np.array_equal(array, given_as)


def test_the_training_flag_is_watched_in_both_positions() -> None:
    watched = of_item("log-probs-model-untouched")
    assert [expectation(case, "after").value for case in watched] == [True, False]
    assert [expectation(case, "during").value for case in watched] == [[True], [False]]


RETURNED = {
    "compute_deltas": ("deltas", "rewards"),
    "compute_log_probs": ("log_probs", "embedding.weight"),
    "compute_loss": ("loss", "log_probs"),
    "compute_kl_penalty": ("kl", "log_probs"),
}


@pytest.mark.parametrize("function", RETURNED)
def test_the_dtype_of_the_input_is_kept_in_float32_and_float64(function: str) -> None:
    returned, given_as = RETURNED[function]
    pairs = {
        (case.inputs[given_as].dtype.name, expectation(case, returned).dtype)
        for case in of_function(function)
        if given_as in case.inputs and returned in {e.name for e in tensors_of(case)}
    }
    assert pairs == {("float32", "float32"), ("float64", "float64")}


def test_rewards_are_float32_whatever_the_reward_function_returns() -> None:
    assert {expectation(case, "rewards").dtype for case in of_function("compute_reward")} == {"float32"}


@pytest.mark.parametrize(
    ("case", "kind", "mentions"),
    [
        ("reward-raises", "KeyError", ["no reward for this response"]),
        ("reward-raises-other", "AssertionError", ["no reward for this response"]),
        ("deltas-mode-cut", "ValueError", ["normalized"]),
        ("deltas-mode-capitals", "ValueError", ["Max_Rewards"]),
        ("deltas-mode-longer", "ValueError", ["rewards_centered"]),
        ("deltas-mode-shorter", "ValueError", ["max_reward"]),
        ("deltas-mode-spaces", "ValueError", ["centered_rewards"]),
        ("loss-mode-longer", "ValueError", ["clipped_ratio"]),
        ("loss-mode-capitals", "ValueError", ["Naive"]),
        ("deltas-unknown-mode", "ValueError", ["centred"]),
        ("deltas-one-response", "ValueError", []),
        ("loss-unknown-mode", "ValueError", ["cliped"]),
        ("loss-unclipped-without-old", "ValueError", []),
        ("loss-clipped-without-old", "ValueError", []),
    ],
)
def test_an_error_case_demands_its_error_beside_a_right_answer(case: str, kind: str, mentions: list[str]) -> None:
    stored = STORED[case]
    assert expectation(stored, "error").value == {"type": kind, "mentions": mentions}
    assert tensors_of(stored), "raising in every call must not be enough"


def test_there_is_no_other_error_case() -> None:
    assert len(ERRORS) == 16


# The loop


LOOPS = {
    case.id: case.params["settings"]
    for case in of_function("run_policy_gradient")
    if case.probe not in ("length_of_run", "epochs_of_run")
}
REFERENCE = {case.id: case.params["settings"] for case in of_item("loop-reference")}


@pytest.mark.parametrize("case", REFERENCE)
def test_a_reference_is_kept_for_some_epochs_and_refreshed_twice_or_once_by_default(case: str) -> None:
    chosen = REFERENCE[case]
    times = 0 if "negative" in case else 1 if case.endswith("-defaults") else 2
    period, epochs = chosen["compute_ref_model_period"], chosen["num_epochs"]
    assert (chosen["kl_penalty"] < 0) == ("negative" in case)
    assert period > 1
    assert len([epoch for epoch in range(1, epochs) if epoch % period == 0]) >= times
    taken = expectation(STORED[case], "reference of epoch").value
    assert taken == [period * (epoch // period) for epoch in range(epochs)]


def test_counting_the_period_in_steps_shows() -> None:
    residues = {s["num_steps_per_epoch"] % s["compute_ref_model_period"] for s in REFERENCE.values()}
    assert residues - {1}


def test_runs_have_one_and_several_inner_steps_every_mode_and_four_seeds() -> None:
    loops = LOOPS.values()
    assert 1 in {chosen["num_steps_per_epoch"] for chosen in loops}
    assert {chosen["num_steps_per_epoch"] for chosen in loops} & {3, 4}
    assert {chosen["deltas_mode"] for chosen in loops} == set(MODES)
    assert {chosen["loss_mode"] for chosen in loops} == {"naive", "unclipped", "clipped"}
    assert len({chosen["seed"] for name, chosen in LOOPS.items() if name.startswith("loop-seed")}) == 4
    assert LOOPS["loop-seed-zero"]["seed"] == 0
    given = [chosen for name, chosen in LOOPS.items() if not name.endswith("-defaults")]
    assert 0.2 not in {chosen["epsilon"] for chosen in given if "epsilon" in chosen}


@each([case for case in of_function("run_policy_gradient") if case.probe == "run"])
def test_a_run_is_long_enough_for_its_weights_to_move_far_beyond_their_tolerance(case: Case) -> None:
    for name in oracle.PARAMETERS:
        entry = expectation(case, f"weights {name}")
        moved = np.abs(expected_of(case, f"weights {name}") - case.inputs[name]).max()
        assert moved > 1e3 * entry.atol


@each(of_function("run_policy_gradient"))
def test_the_numbers_of_a_run_are_one_items_business_and_traces_the_others(case: Case) -> None:
    weights = [entry for entry in tensors_of(case) if entry.name.startswith("weights")]
    assert bool(weights) == (case.item in ("loop-optimizer", "loop-seed"))
    traces = [entry for entry in case.expected if entry.kind == "fact" and not entry.diagnosis]
    assert bool(traces) == (case.probe in ("trace", "seeded_run", "epochs_of_run"))

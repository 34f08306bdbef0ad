"""The catalogue of mistakes: complete, in order, and each mistake wrong in just the way its row says."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from all_assignments import generator_of
from places import KIT
from sorting_task import Model, Record
from torch import Tensor

SOLUTION = (KIT / "solution" / "policy_gradient" / "policy_gradient.py").read_text()
WRONG = generator_of("policy_gradient")["mistakes"]
CORRECT, MISTAKES, Correct, Mistake = WRONG.CORRECT, WRONG.MISTAKES, WRONG.Correct, WRONG.Mistake
BY_CODE = {mistake.code: mistake for mistake in MISTAKES}
BY_FUNCTION = {correct.function: correct for correct in CORRECT}
# What is stated of each row below goes so far; rows that came later are held by the stored cases, in test_oracle.py.
LAST = {"R": 21, "D": 40, "P": 28, "L": 46, "K": 25, "G": 46}
STATED = [mistake for mistake in MISTAKES if int(mistake.code[1:]) <= LAST[mistake.code[0]]]
FUNCTION_LEVEL = [mistake for mistake in STATED if mistake.code[0] != "G"]
LOOP_LEVEL = [mistake for mistake in STATED if mistake.code[0] == "G"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def names_of(source: str) -> dict[str, Any]:
    """Return what a submission defines: the solution's text, followed by a source."""
    names: dict[str, Any] = {"__name__": "submission"}
    exec(compile(f"{SOLUTION}\n\n{source}", "<submission>", "exec", dont_inherit=True), names)
    return names


def each(mistakes: Sequence[Mistake]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mistake", mistakes, ids=[f"{m.code}-{m.slug}" for m in mistakes])


# The catalogue as a text


def test_the_catalogue_compiles_and_keeps_every_signature() -> None:
    WRONG.check_catalogue()


def test_the_catalogue_can_be_read_without_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from all_assignments import generator_of;"
        "generator_of('policy_gradient')['mistakes'].check_catalogue()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[1] / "support", check=True)


def test_an_edit_that_fits_nowhere_or_twice_is_refused() -> None:
    correct = Correct("double", "def double(x):\n    return x + x\n")
    for right in ("y", "x + x + x", "x"):
        with pytest.raises(ValueError, match=r"Z01 slug: .* should occur once"):
            correct.but("Z01", "slug", "Is it twice?", (right, "2"))


# Hints


@each(MISTAKES)
def test_a_hint_names_no_call_or_keyword_that_its_correction_would_add(mistake: Mistake) -> None:
    used = set(re.findall(r"\w+", mistake.source))
    added = set(re.findall(r"(\w+)(?:\(|=(?!=))", BY_FUNCTION[mistake.function].source)) - used
    assert added.isdisjoint(re.findall(r"\w+", mistake.hint))


# How a mistake shows. A probe is a named call; an observation is what came of it.
#
#   raised     an exception where the right function returns
#   silent     no exception, or another one, where the right function raises
#   value      shape or entries
#   dtype      dtype of the result
#   tracked    whether a result that is a constant requires a gradient, or the model's train flag
#   gradient   with respect to what is trained, also where there is none
#   modified   an argument

KINDS = {
    "raised": "R01 R03 R08 D17 L39 L40",
    "silent": "R08 R15 D34 D36 L36 L37",
    "value": """
        R01 R02 R04 R05 R06 R07 R08 R10 R11 R12 R13 R14 R16 R17 R18 R20 R21
        D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 D11 D12 D13 D14 D15 D16 D19 D20 D21 D22 D23 D24 D25 D26
        D27 D28 D29 D30 D31 D32 D33 D37 D38 D39 D40
        P01 P02 P03 P06 P07 P08 P09 P10 P11 P12 P13 P14 P15 P16 P17 P20 P22 P23 P24 P25 P26
        L01 L02 L03 L05 L06 L07 L08 L09 L10 L11 L12 L13 L14 L15 L16 L17 L18 L19 L20 L21 L22 L23 L25 L27
        L28 L29 L30 L32 L33 L34 L35 L41 L42 L43 L44 L46
        K01 K02 K03 K04 K05 K06 K07 K08 K09 K13 K14 K15 K16 K17 K18 K19 K20 K21 K23 K25
    """,
    "dtype": "R04 R09 D33 D35",
    "tracked": "R19 P27",
    "gradient": """
        P01 P02 P03 P04 P05 P06 P07 P08 P09 P10 P11 P12 P13 P14 P17 P18 P20 P22 P23 P24 P25 P26
        P28
        L01 L02 L03 L04 L05 L06 L07 L08 L09 L11 L12 L13 L15 L16 L17 L18 L19 L20 L21 L22 L23 L24 L25 L26
        L27 L28 L29 L30 L31 L32 L33 L34 L35 L38 L41 L42 L43 L44 L46
        K01 K02 K03 K05 K06 K07 K08 K09 K10 K11 K12 K13 K14 K15 K16 K17 K18 K19 K20 K21 K23 K24 K25
    """,
    "modified": "D18 L38 K22",
}

Observation = dict[str, Any]
Probe = Callable[[dict[str, Any]], Observation]


def observe(
    function: Callable[..., Any],
    *arguments: Any,
    trained: Sequence[Tensor] = (),
    upstream: Callable[[Tensor], Tensor] = torch.ones_like,
) -> Observation:
    """Return what comes of one call: the exception's name, or the result, its gradient, what it modified."""
    before = [argument.detach().clone() if isinstance(argument, Tensor) else None for argument in arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the standard deviation of one number warns
            result = function(*arguments)
    except Exception as error:
        return {"error": type(error).__name__}
    value = result.detach().clone()
    return {
        "error": None,
        "value": value,
        "dtype": result.dtype,
        "tracked": None if trained else result.requires_grad,
        "gradient": gradient(result, trained, upstream),
        "modified": [not torch.equal(old, new) for old, new in zip(before, arguments, strict=True) if old is not None],
    }


def gradient(result: Tensor, trained: Sequence[Tensor], upstream: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Return the gradient with respect to all that is trained, as one vector; None if there is no graph."""
    if not trained:
        return None
    try:
        parts = torch.autograd.grad(result, trained, upstream(result), materialize_grads=True)
    except RuntimeError:
        return None
    return torch.cat([part.flatten() for part in parts])


def differences(got: Observation, want: Observation) -> set[str]:
    if want["error"] or got["error"]:
        if got["error"] == want["error"]:
            return set()
        return {"silent"} if want["error"] else {"raised"}
    kinds = {kind for kind in ("dtype", "tracked", "modified") if got[kind] != want[kind]}
    kinds |= {kind for kind in ("value", "gradient") if not agree(got[kind], want[kind])}
    return kinds


def agree(got: Tensor | None, want: Tensor | None) -> bool:
    if got is None or want is None:
        return got is want
    if got.shape != want.shape:
        return False
    tolerance = (1e-6, 1e-8) if want.dtype == torch.float64 else (1e-4, 1e-6)
    scale = max(1.0, want.abs().max().item()) if want.numel() else 1.0
    return torch.allclose(got.double(), want.double(), rtol=tolerance[0], atol=tolerance[1] * scale)


# Probes: sizes are pairwise distinct, b=2 t=5 p=3, prompts of 4 tokens, 7 tokens in the vocabulary.


def double(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PROMPTS = torch.tensor([[3, 1, 0, 2], [5, 6, 4, 1]])
RESPONSES = (7 * drawn(1, 2, 5, 3)).long()
SQUARE_RESPONSES = (7 * drawn(2, 2, 5, 4)).long()


def fractional(prompt: list[int], response: list[int]) -> float:
    ordered = sum(position * token for position, token in enumerate(response, start=1))
    return 0.25 * ordered + 0.5 * prompt[0] - prompt[-1] * response[0]


def of_sets(prompt: list[int], response: list[int]) -> float:
    return len(set(prompt) & set(response)) + 0.375


def of_counts(prompt: list[int], response: list[int]) -> float:
    return float(sum(response.count(token) for token in prompt))


def negative(prompt: list[int], response: list[int]) -> float:
    return 0.5 * prompt[0] - sum(response)


def careless(prompt: list[int], response: list[int]) -> float:
    prompt.append(100)
    response.clear()
    return float(sum(prompt))


def broken(prompt: list[int], response: list[int]) -> float:
    raise KeyError(response[0])


def reward_probe(reward_fn: Callable[..., float], responses: Tensor) -> Probe:
    return lambda names: observe(names["compute_reward"], PROMPTS.clone(), responses.clone(), reward_fn)


REWARDS = {
    "F": [[2, 5, 5, 1, 4], [-1, -2, -3.5, -1, -2]],
    "C": [[3, 3, 3, 3, 3], [0, 1, 0, 0, 0], [-0.5, -0.5, -0.5, -0.5, -0.5]],
    "S": [[0, 1e-4, 0, 2e-4, 0], [0, 1, 2, 3, 4]],
    "tiny": [[0, 2**-20, 0, 0, 0], [2, 2, 2, 2, 2]],
    "G1": [[2.5]],
}


def deltas_probe(name: str, mode: str) -> Probe:
    return lambda names: observe(names["compute_deltas"], double(REWARDS[name]), mode)


def make_model(responses: Tensor, peak: float = 1.0) -> Model:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = Model(7, 6, PROMPTS.shape[1], responses.shape[2]).double()
    model.embedding.weight.data.mul_(peak)
    return model


def log_probs_probe(prompts: Tensor, responses: Tensor, peak: float = 1.0) -> Probe:
    def probe(names: dict[str, Any]) -> Observation:
        model = make_model(responses, peak)
        observation = observe(
            names["compute_log_probs"],
            prompts.clone(),
            responses.clone(),
            model,
            trained=list(model.parameters()),
            upstream=lambda result: torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view_as(result),
        )
        return {**observation, "tracked": model.training}

    return probe


DELTAS = double([[1.5, -0.5, 0, 2, -1], [-2, 0.25, 1, -0.75, 3]])
LOG_PROBS = -0.1 - 2 * drawn(4, 2, 5, 3)
RATIO = torch.linspace(0.3, 2.6, 30, dtype=torch.float64)[drawn(5, 30).argsort()].view(2, 5, 3)
OLD_LOG_PROBS = LOG_PROBS - RATIO.log()
REF_LOG_PROBS = LOG_PROBS + 3 * drawn(6, 2, 5, 3) - 1.5


def unlikely(like: Tensor, shift: float) -> Tensor:
    return (0.1 * like - 120 + shift).float()


def loss_probe(
    mode: str, *, old: str = "old", sign: int = 1, extreme: bool = False, epsilon: float | None = None
) -> Probe:
    def probe(names: dict[str, Any]) -> Observation:
        leaf = (unlikely(LOG_PROBS, 0) if extreme else LOG_PROBS.clone()).requires_grad_()
        log_probs = leaf * 1
        olds = {"old": OLD_LOG_PROBS.clone(), "shared": log_probs, "none": None}
        old_log_probs = unlikely(OLD_LOG_PROBS, -0.5) if extreme else olds[old]
        deltas = sign * DELTAS.to(leaf.dtype, copy=True)
        compute_loss = partial(names["compute_loss"], **({} if epsilon is None else {"epsilon": epsilon}))
        return observe(compute_loss, log_probs, deltas, mode, old_log_probs, trained=[leaf])

    return probe


def kl_probe(*, shared: bool = False, extreme: bool = False) -> Probe:
    def probe(names: dict[str, Any]) -> Observation:
        leaf = (unlikely(LOG_PROBS, 0) if extreme else LOG_PROBS.clone()).requires_grad_()
        log_probs = leaf * 1
        apart = unlikely(REF_LOG_PROBS, 0) if extreme else REF_LOG_PROBS.clone()
        ref_log_probs = 0.5 * log_probs - 0.3 if shared else apart
        return observe(names["compute_kl_penalty"], log_probs, ref_log_probs, trained=[leaf])

    return probe


DELTAS_MODES = ("rewards", "centered_rewards", "normalized_rewards", "max_rewards")
PROBES: dict[str, dict[str, Probe]] = {
    "compute_reward": {
        "fractional": reward_probe(fractional, SQUARE_RESPONSES),
        "of sets": reward_probe(of_sets, RESPONSES),
        "of counts": reward_probe(of_counts, RESPONSES),
        "negative": reward_probe(negative, SQUARE_RESPONSES),
        "careless": reward_probe(careless, RESPONSES),
        "broken": reward_probe(broken, SQUARE_RESPONSES),
        "one answer to both": reward_probe(fractional, SQUARE_RESPONSES[:1].expand(2, -1, -1)),
    },
    "compute_deltas": {
        **{f"{mode}:{name}": deltas_probe(name, mode) for mode in DELTAS_MODES for name in REWARDS},
        "unknown mode": deltas_probe("F", "centred"),
    },
    "compute_log_probs": {
        "F": log_probs_probe(PROMPTS, RESPONSES),
        "peaked": log_probs_probe(PROMPTS, RESPONSES, peak=4.0),
        "one trial, one position": log_probs_probe(PROMPTS, RESPONSES[:, :1, :1]),
    },
    "compute_loss": {
        "naive": loss_probe("naive", old="none"),
        "unclipped": loss_probe("unclipped"),
        "clipped 0.2": loss_probe("clipped", epsilon=0.2),
        "clipped 0.01": loss_probe("clipped", epsilon=0.01),
        "clipped, other signs": loss_probe("clipped", sign=-1, epsilon=0.2),
        "default epsilon": loss_probe("clipped"),
        "shared unclipped": loss_probe("unclipped", old="shared"),
        "shared clipped": loss_probe("clipped", old="shared"),
        "extreme": loss_probe("unclipped", extreme=True),
        "unknown mode": loss_probe("clip"),
        "unclipped without old": loss_probe("unclipped", old="none"),
        "clipped without old": loss_probe("clipped", old="none"),
    },
    "compute_kl_penalty": {
        "kl": kl_probe(),
        "shared": kl_probe(shared=True),
        "extreme": kl_probe(extreme=True),
    },
}


@cache
def observations(function: str, source: str) -> dict[str, Observation]:
    names = names_of(source)
    return {case: probe(names) for case, probe in PROBES[function].items()}


def found(function: str, source: str) -> dict[str, set[str]]:
    """Return how a source differs from the solution, case by case, without the cases where it does not."""
    got, want = observations(function, source), observations(function, "")
    return {case: kinds for case in want if (kinds := differences(got[case], want[case]))}


@pytest.mark.parametrize("function", PROBES)
def test_the_text_that_mistakes_depart_from_is_right(function: str) -> None:
    assert found(function, BY_FUNCTION[function].source) == {}


@each(FUNCTION_LEVEL)
def test_a_mistake_shows_in_the_way_its_row_says(mistake: Mistake) -> None:
    kinds = set().union(*found(mistake.function, mistake.source).values())
    assert kinds == {kind for kind, codes in KINDS.items() if mistake.code in codes.split()}


# What the rows say in numbers. Those of compute_deltas are rows of F, C and S above, worked out by hand.

FIRST_DIFFERENCES = """
    D01 centered_rewards:F    3   1        -2.4         D02 centered_rewards:F    0   1.25     -1.4
    D03 normalized_rewards:F  7  -0.266204 -1.56142     D04 normalized_rewards:F  7  -0.51277  -1.56142
    D05 normalized_rewards:F  7  -1.74572  -1.56142     D06 normalized_rewards:C  0   nan       0
    D07 normalized_rewards:C  6   1.788854  1.788814    D08 normalized_rewards:F  7  -1.561288 -1.561425
    D09 normalized_rewards:C  6   1.788850  1.788814    D10 normalized_rewards:S  3   0.044254  1.40785
    D11 normalized_rewards:F  3  -0.727271 -1.32115     D12 normalized_rewards:F  1   2.75239   0.88077
    D13 normalized_rewards:F  1   3.12837   0.88077     D14 normalized_rewards:C  0   3         0
    D15 normalized_rewards:C  6   1.788854  1.788814    D16 normalized_rewards:F  7   0        -1.56142
    D19 centered_rewards:F    3  -3        -2.4         D20 centered_rewards:F    0  -2        -1.4
    D21 centered_rewards:C    5  -1        -0.2         D22 centered_rewards:F    3   2.4      -2.4
    D23 max_rewards:F         2   0         5           D24 max_rewards:F         5   0        -1
    D25 max_rewards:F         4   4         0           D26 max_rewards:F         1   1         5
    D27 max_rewards:F         0  -inf       0           D28 max_rewards:F         5   0        -1
    D29 max_rewards:F         1   1.6       5           D30 max_rewards:F         1   0         5
    D31 max_rewards:F         0   5         0           D32 rewards:F             0  -1.4       2
    D33 rewards:F             7  -3        -3.5         D37 normalized_rewards:F  7  -0.457142 -1.56142
    D38 normalized_rewards:F  7  -1        -1.56142     D39 normalized_rewards:C  6   1.788854  1.788814
    D40 max_rewards:F         4   4         0
"""


@pytest.mark.parametrize(
    ("code", "case", "index", "wrong", "right"),
    [tuple(row) for row in re.findall(r"(D\d\d) +(\S+) +(\d) +(\S+) +(\S+)", FIRST_DIFFERENCES)],
)
def test_a_wrong_delta_has_the_number_of_its_row(code: str, case: str, index: str, wrong: str, right: str) -> None:
    for source, number in ((BY_CODE[code].source, float(wrong)), ("", float(right))):
        value = observations("compute_deltas", source)[case]["value"].flatten()[int(index)].item()
        assert value == pytest.approx(number, rel=1e-5, abs=1e-6, nan_ok=True)


def number_of(function: str, code: str, case: str) -> float:
    source = BY_CODE[code].source if code else ""
    return float(observations(function, source)[case]["value"])


@pytest.mark.parametrize(
    ("code", "case", "factor", "offset"),
    [
        ("L01", "naive", -1, 0),
        ("L19", "naive", 3, 0),
        ("L20", "naive", 30, 0),
        ("L21", "unclipped", 5, 0),
        ("L22", "clipped 0.2", 10 / 9, 0),
        ("L32", "unclipped", 1, 0.35),
    ],
)
def test_a_wrong_loss_stands_to_the_right_one_as_its_row_says(
    code: str, case: str, factor: float, offset: float
) -> None:
    right = number_of("compute_loss", "", case)
    assert number_of("compute_loss", code, case) == pytest.approx(factor * right + offset, rel=1e-9)


@pytest.mark.parametrize(
    ("code", "factor", "offset"),
    [("K04", 1, 3), ("K06", 1 / 3, 0), ("K07", 10, 0), ("K08", 5 / 3, 0), ("K09", 2 / 3, 0)],
)
def test_a_wrong_penalty_stands_to_the_right_one_as_its_row_says(code: str, factor: float, offset: float) -> None:
    right = number_of("compute_kl_penalty", "", "kl")
    assert number_of("compute_kl_penalty", code, "kl") == pytest.approx(factor * right + offset, rel=1e-9)


@pytest.mark.parametrize(("code", "other", "factor"), [("K25", "K01", -1), ("K16", "K15", 5)])
def test_two_wrong_penalties_stand_to_each_other_as_their_rows_say(code: str, other: str, factor: float) -> None:
    penalties = [number_of("compute_kl_penalty", which, "kl") for which in (code, other)]
    assert penalties[0] == pytest.approx(factor * penalties[1], rel=1e-9)


@pytest.mark.parametrize("code", ["L04", "L26", "P28"])
def test_a_gradient_that_cancels_is_zero_and_not_missing(code: str) -> None:
    mistake = BY_CODE[code]
    case = {"L04": "shared unclipped", "L26": "naive", "P28": "F"}[code]
    gradient = observations(mistake.function, mistake.source)[case]["gradient"]
    assert gradient is not None
    assert not gradient.any()


@pytest.mark.parametrize("function", PROBES)
def test_no_other_mistakes_have_the_same_answers_to_every_probe(function: str) -> None:
    alike = {
        "compute_log_probs": {("P04", "P05"), ("P04", "P18"), ("P05", "P18")},
        "compute_loss": {("L39", "L40")},
    }
    answers = {m.code: observations(function, m.source) for m in FUNCTION_LEVEL if m.function == function}
    pairs = {
        (code, other)
        for code, other in combinations(answers, 2)
        if not any(differences(answers[code][case], want) for case, want in answers[other].items())
    }
    assert pairs == alike.get(function, set())


# The loop, with stored responses in place of sampled ones, and a loss that takes old_log_probs as they come


def trusting_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    epsilon: float = 0.2,
) -> Tensor:
    if mode == "naive":
        return -(log_probs * deltas[..., None]).mean()
    assert old_log_probs is not None
    ratio = (log_probs - old_log_probs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    return -torch.minimum(ratio * deltas[..., None], clipped * deltas[..., None]).mean()


LOOP = {
    "prompts": PROMPTS.tolist(),
    "num_epochs": 5,
    "num_steps_per_epoch": 4,
    "compute_ref_model_period": 2,
    "num_responses": 5,
    "deltas_mode": "normalized_rewards",
    "loss_mode": "clipped",
    "kl_penalty": 0.3,
    "epsilon": 0.1,
    "reward_fn": fractional,
    "learning_rate": 1e-2,
    "progress": False,
}


@cache
def run(source: str, *, replayed: bool = True, **changed: Any) -> dict[str, Any]:
    """Return what a run shows: its exception, weights, records by column, and how often it sampled."""
    names = names_of(source)
    names["compute_loss"] = trusting_loss
    names["sampled"] = 0
    sample = names["generate_responses"]

    def generate(prompts: Tensor, model: Model, num_responses: int) -> Tensor:
        names["sampled"] += 1
        stored = (7 * drawn(100 + names["sampled"] % 5, 2, num_responses, 4)).long()
        responses: Tensor = stored if replayed else sample(prompts, model, num_responses)
        return responses

    names["generate_responses"] = generate
    try:
        trained = names["run_policy_gradient"](**{**LOOP, **changed})
    except RuntimeError as error:
        return {"error": str(error)}
    records: list[Record] = trained.records
    return {
        "error": "",
        "weights": torch.cat([parameter.detach().flatten() for parameter in trained.model.parameters()]),
        "loss": torch.tensor([record.loss for record in records]),
        "reward": torch.tensor([record.mean_reward for record in records]),
        "step": [(record.epoch, record.step) for record in records],
        "sampled": names["sampled"],
    }


def loop_differences(got: dict[str, Any], want: dict[str, Any]) -> set[str]:
    if got["error"]:
        return {"raised"}
    kinds = {kind for kind in ("step", "sampled") if got[kind] != want[kind]}
    for kind in ("weights", "loss", "reward"):
        if got[kind].shape != want[kind].shape or not torch.allclose(got[kind], want[kind], atol=1e-5):
            kinds.add(kind)
    return kinds


# What each wrong loop changes; where a row is not named, weights and losses.
LOOP_KINDS = {
    "G02": {"weights", "loss", "reward", "sampled"},
    "G05": {"raised"},
    "G14": {"loss"},
    "G15": {"step"},
    "G16": {"weights", "loss", "reward", "step"},
    "G18": {"weights", "loss", "reward"},
    "G19": set(),
    "G27": {"raised"},
    "G29": {"reward"},
    "G44": {"loss", "reward", "step"},
}


def test_the_loop_that_mistakes_depart_from_is_right() -> None:
    for changed in ({}, {"num_steps_per_epoch": 1}, {"loss_mode": "naive", "kl_penalty": 0.0}):
        for replayed in (True, False):
            settings = {"replayed": replayed, **changed}
            want, got = run("", **settings), run(BY_FUNCTION["run_policy_gradient"].source, **settings)
            assert not want["error"]
            assert loop_differences(got, want) == set()


@each(LOOP_LEVEL)
def test_a_wrong_loop_shows_in_the_way_its_row_says(mistake: Mistake) -> None:
    kinds = loop_differences(run(mistake.source), run(""))
    assert kinds == LOOP_KINDS.get(mistake.code, {"weights", "loss"})


def test_a_loop_that_reseeds_shows_only_where_it_samples() -> None:
    settings = {"replayed": False, "kl_penalty": 0.0, "learning_rate": 0.0}
    wrong, right = (run(source, **settings)["reward"] for source in (BY_CODE["G19"].source, ""))
    assert len(set(wrong.tolist())) == 1
    assert len(set(right.tolist())) == LOOP["num_epochs"]


def test_old_log_probs_with_their_graph_are_silent_where_an_epoch_has_one_step() -> None:
    kinds = loop_differences(*(run(source, num_steps_per_epoch=1) for source in (BY_CODE["G05"].source, "")))
    assert "weights" in kinds
    assert "raised" not in kinds


def test_errors_of_the_graph_are_those_of_their_rows() -> None:
    assert "backward through the graph a second time" in run(BY_CODE["G05"].source)["error"]
    assert "modified by an inplace operation" in run(BY_CODE["G27"].source)["error"]


@pytest.mark.parametrize("code", ["G08", "G46"])
def test_a_loop_that_never_trains_keeps_its_weights(code: str) -> None:
    assert torch.equal(run(BY_CODE[code].source)["weights"], run("", num_epochs=0)["weights"])


RUNS: tuple[dict[str, Any], ...] = ({}, {"num_steps_per_epoch": 1}, {"replayed": False, "kl_penalty": 0.0})
ALIKE = [("G03", "G10", "G31", "G34", "G36", "G41"), ("G08", "G46"), ("G11", "G35")]


def test_no_loops_agree_in_every_run_but_those_that_are_one_wrong_algorithm() -> None:
    answers = {mistake.code: [run(mistake.source, **changed) for changed in RUNS] for mistake in LOOP_LEVEL}
    alike = {
        (code, other)
        for code, other in combinations(answers, 2)
        if all(
            not loop_differences(got, want) if not want["error"] else bool(got["error"])
            for got, want in zip(answers[code], answers[other], strict=True)
        )
    }
    assert alike == {pair for group in ALIKE for pair in combinations(group, 2)}


@each(LOOP_LEVEL)
def test_a_wrong_loop_runs_in_the_default_mode(mistake: Mistake) -> None:
    got = run(mistake.source, replayed=False, loss_mode="naive", kl_penalty=0.0, deltas_mode="rewards")
    assert bool(got["error"]) == (mistake.code == "G27")

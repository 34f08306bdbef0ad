"""The second assignment against the world: TRL's and verl's own code, their formulas written out, and transformers.

The packages are optional extras: `pip install -e '.[huggingface]'` for transformers, TRL and verl as their pages say.
Where one is missing, its tests are skipped; the formulas are tested everywhere.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from addition_task import split_problems
from grpo_language_model import compute_response_log_probs, group_advantages, grpo_loss, train
from language_model import CharTokenizer

SEEDS = pytest.mark.parametrize("seed", range(8))
EPSILON, MAX_LENGTH = 0.2, 11
TRL_TYPES = {"token_mean": "bnpo", "sequence_mean": "grpo", "constant_length": "dr_grpo"}
VERL_MODES = {
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "constant_length": "seq-mean-token-sum-norm",
}
NORMALIZATIONS = pytest.mark.parametrize("normalization", TRL_TYPES)


def imported(name: str) -> Any:
    """A package of others, with whatever it warns of; the test is skipped where it cannot be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name} cannot be imported here: {error}")


def drawn(seed: int) -> dict[str, torch.Tensor]:
    """Random arguments of a loss, of which a good part is clipped, with responses of several lengths."""
    generator = torch.Generator().manual_seed(seed)
    batch, pos = 4 + seed % 3, 6 + seed % 4
    log_probs = -3 * torch.rand(batch, pos, generator=generator, dtype=torch.float64)
    lengths = torch.randint(1, pos + 1, (batch,), generator=generator)
    noise = torch.randn(2, batch, pos, generator=generator, dtype=torch.float64)
    return {
        "log_probs": log_probs.requires_grad_(),
        "old_log_probs": log_probs.detach() + 0.4 * noise[0],
        "ref_log_probs": log_probs.detach() + 0.7 * noise[1],
        "advantages": torch.randn(batch, generator=generator, dtype=torch.float64),
        "mask": (torch.arange(pos) < lengths[:, None]).long(),
    }


def ours(given: dict[str, torch.Tensor], normalization: str, beta: float) -> torch.Tensor:
    tensors = [given[name] for name in ("log_probs", "old_log_probs", "advantages", "mask")]
    options: dict[str, Any] = {"normalization": normalization, "epsilon": EPSILON, "max_length": MAX_LENGTH}
    return grpo_loss(*tensors, **options, kl_coefficient=beta, ref_log_probs=given["ref_log_probs"])


def assert_same(given: dict[str, torch.Tensor], mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """Value and gradient agree to 1e-6."""
    gradients = [torch.autograd.grad(loss, given["log_probs"], retain_graph=True)[0] for loss in (mine, theirs)]
    torch.testing.assert_close(mine, theirs.to(mine.dtype), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


# The published formulas, written out


def published(given: dict[str, torch.Tensor], normalization: str, beta: float) -> torch.Tensor:
    """GRPO (arXiv 2402.03300), DAPO (2503.14476) and Dr. GRPO (2503.20783), response by response."""
    per_response = []
    for row in range(len(given["mask"])):
        kept = given["mask"][row].bool()
        log_prob, old, ref = (given[name][row][kept] for name in ("log_probs", "old_log_probs", "ref_log_probs"))
        ratio, advantage = (log_prob - old).exp(), given["advantages"][row]
        surrogate = torch.stack([ratio * advantage, ratio.clip(1 - EPSILON, 1 + EPSILON) * advantage]).amin(0)
        penalty = (ref.exp() / log_prob.exp()) - (ref.exp() / log_prob.exp()).log() - 1
        per_response.append(beta * penalty - surrogate)
    if normalization == "sequence_mean":
        return torch.stack([tokens.mean() for tokens in per_response]).mean()
    if normalization == "token_mean":
        return torch.cat(per_response).mean()
    return torch.stack([tokens.sum() / MAX_LENGTH for tokens in per_response]).mean()


@SEEDS
@NORMALIZATIONS
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_the_loss_is_that_of_the_papers(seed: int, normalization: str, beta: float) -> None:
    given = drawn(seed)
    assert_same(given, ours(given, normalization, beta), published(given, normalization, beta))


# TRL


def trl_loss(given: dict[str, torch.Tensor], loss_type: str, beta: float) -> torch.Tensor:
    """The loss of TRL's trainer, given what its model would return."""
    trainer = imported("trl.trainer.grpo_trainer").GRPOTrainer
    no_entropy = torch.zeros(given["mask"].shape)
    asked = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (given["log_probs"], no_entropy, None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=beta,
        loss_type=loss_type,
        epsilon_low=EPSILON,
        epsilon_high=EPSILON,
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False),
        use_vllm=False,
        model=SimpleNamespace(training=False),
        max_completion_length=MAX_LENGTH,
        accelerator=SimpleNamespace(gather=lambda x: x, reduce=lambda x, **_: x, num_processes=1),
        _metrics={"eval": defaultdict(list)},
        _entropy_bonus_enabled=False,
    )
    prompt = torch.zeros(len(given["mask"]), 1, dtype=torch.long)
    inputs = {
        "prompt_ids": prompt,
        "prompt_mask": prompt + 1,
        "completion_ids": torch.zeros_like(given["mask"]),
        "completion_mask": given["mask"],
        **{name: given[name] for name in ("advantages",)},
        "old_per_token_logps": given["old_log_probs"],
        "ref_per_token_logps": given["ref_log_probs"],
    }
    loss: torch.Tensor = trainer._compute_loss(asked, None, inputs)
    return loss


@SEEDS
@NORMALIZATIONS
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.filterwarnings("ignore")
def test_the_loss_is_trls(seed: int, normalization: str, beta: float) -> None:
    given = drawn(seed)
    assert_same(given, ours(given, normalization, beta), trl_loss(given, TRL_TYPES[normalization], beta))


# verl


@SEEDS
@NORMALIZATIONS
@pytest.mark.filterwarnings("ignore")
def test_the_loss_without_a_penalty_is_verls(seed: int, normalization: str) -> None:
    algorithms = imported("verl.trainer.ppo.core_algos")
    given = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, *_ = algorithms.compute_policy_loss(
            given["old_log_probs"],
            given["log_probs"],
            given["advantages"][:, None].expand_as(given["log_probs"]),
            given["mask"],
            cliprange=EPSILON,
            clip_ratio_c=1e6,  # its second clip, of ratios with negative advantages, is not GRPO's
            loss_agg_mode=VERL_MODES[normalization],
        )
    if normalization == "constant_length":
        theirs = theirs * given["mask"].shape[1] / MAX_LENGTH  # its horizon is the width of the batch
    assert_same(given, ours(given, normalization, 0.0), theirs)


@SEEDS
@NORMALIZATIONS
@pytest.mark.filterwarnings("ignore")
def test_the_penalty_is_verls(seed: int, normalization: str) -> None:
    algorithms = imported("verl.trainer.ppo.core_algos")
    given = drawn(seed)
    per_token = algorithms.kl_penalty_forward(given["log_probs"], given["ref_log_probs"], "k3")
    theirs = algorithms.agg_loss(per_token, given["mask"], VERL_MODES[normalization], loss_scale_factor=MAX_LENGTH)
    assert_same(given, ours(given, normalization, 1.0) - ours(given, normalization, 0.0), theirs)


@pytest.mark.parametrize(("mode", "by_std"), [("mean_std", True), ("mean", False)])
@pytest.mark.filterwarnings("ignore")
def test_advantages_are_verls(mode: str, by_std: bool) -> None:
    algorithms = imported("verl.trainer.ppo.core_algos")
    rewards = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    index = torch.arange(3).repeat_interleave(5).numpy()
    token_rewards = rewards.reshape(-1, 1)
    theirs, _ = algorithms.compute_grpo_outcome_advantage(
        token_rewards, torch.ones_like(token_rewards), index, epsilon=1e-5, norm_adv_by_std_in_grpo=by_std
    )
    torch.testing.assert_close(group_advantages(rewards, mode).reshape(-1, 1), theirs, rtol=1e-6, atol=1e-6)


# transformers


@pytest.fixture(params=["GPT2", "Llama"])
def hugging_face_model(request: pytest.FixtureRequest) -> Any:
    """A small causal model of transformers, from a configuration and no network."""
    transformers = imported("transformers")
    tokenizer = CharTokenizer()
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    if request.param == "GPT2":
        sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
        config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **special)
    else:
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes, **special)
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_transformers_scores_what_its_own_loss_scores(hugging_face_model: Any) -> None:
    model = hugging_face_model.eval()
    ids = torch.randint(2, 17, (3, 9), generator=torch.Generator().manual_seed(0))
    scored = compute_response_log_probs(model, ids, torch.ones_like(ids), 4)
    labels = ids.clone()
    labels[:, :4] = -100
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
    torch.testing.assert_close(scored.sum() / (3 * 5), -loss)


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_transformers_trains_unchanged(hugging_face_model: Any) -> None:
    """Rewarded for the digit 7, it writes 7s; dropout, which GPT-2 has, stays off."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run = train(
        hugging_face_model.to(device).train(),
        CharTokenizer(),
        split_problems()[0],
        reward_fn=lambda problem, response: response.count("7") / 8,
        num_steps=15,
        num_prompts=4,
        num_responses=8,
        max_new_tokens=8,
        kl_coefficient=0.01,
        learning_rate=3e-3,
        progress=False,
    )
    rewards = [record.mean_reward for record in run.records]
    assert sum(rewards[-6:]) / 6 > 3 * sum(rewards[:2]) / 2 + 0.05
    assert not run.model.training

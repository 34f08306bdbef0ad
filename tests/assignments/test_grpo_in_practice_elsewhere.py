"""GRPO in practice against the world: TRL's and verl's own code, where those packages are installed.

TRL and verl are installed as their pages say; where one is missing, its tests are skipped.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from grpo_in_practice import importance_weights, kl_penalty, policy_loss

SEEDS = pytest.mark.parametrize("seed", range(3))
LOW, HIGH, DUAL, MAX_LENGTH = 0.2, 0.28, 3.0, 11
TRL_TYPES = {"token_mean": "bnpo", "sequence_mean": "grpo", "constant_length": "dr_grpo"}
VERL_MODES = {
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "constant_length": "seq-mean-token-sum-norm",
}
NORMALIZATIONS = pytest.mark.parametrize("normalization", TRL_TYPES)
pytestmark = pytest.mark.filterwarnings("ignore")


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
    noise = torch.randn(batch, pos, generator=generator, dtype=torch.float64)
    shift = 0.4 * torch.randn(batch, 1, generator=generator, dtype=torch.float64)  # or no response would be clipped
    lengths = torch.randint(1, pos + 1, (batch,), generator=generator)
    return {
        "log_probs": log_probs.requires_grad_(),
        "old_log_probs": log_probs.detach() + 0.6 * noise + shift,
        "advantages": torch.randn(batch, generator=generator, dtype=torch.float64),
        "mask": (torch.arange(pos) < lengths[:, None]).long(),
    }


def ours(given: dict[str, torch.Tensor], objective: str, normalization: str, **options: Any) -> torch.Tensor:
    tensors = [given[name] for name in ("log_probs", "old_log_probs", "advantages", "mask")]
    return policy_loss(*tensors, objective, LOW, HIGH, normalization=normalization, max_length=MAX_LENGTH, **options)


def assert_same(given: dict[str, torch.Tensor], mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """Value and gradient agree to 1e-6."""
    gradients = [torch.autograd.grad(loss, given["log_probs"], retain_graph=True)[0] for loss in (mine, theirs)]
    torch.testing.assert_close(mine, theirs.to(mine.dtype), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


# verl


def verl_loss(
    given: dict[str, torch.Tensor], name: str, normalization: str, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """The loss that verl registers under this name."""
    algorithms, configs = imported("verl.trainer.ppo.core_algos"), imported("verl.workers.config")
    config = configs.ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio=LOW,
        clip_ratio_low=LOW,
        clip_ratio_high=HIGH,
        clip_ratio_c=DUAL,
    )
    config.global_batch_info["loss_scale_factor"] = MAX_LENGTH
    loss, _ = algorithms.get_policy_loss_fn(name)(
        given["old_log_probs"],
        given["log_probs"],
        given["advantages"][:, None].expand_as(given["log_probs"]),
        given["mask"],
        loss_agg_mode=VERL_MODES[normalization],
        config=config,
        rollout_is_weights=weights,
    )
    return loss


@SEEDS
@NORMALIZATIONS
@pytest.mark.parametrize(
    ("objective", "name", "options"),
    [("token", "vanilla", {"dual_clip": DUAL}), ("sequence", "gspo", {}), ("cispo", "cispo", {})],
)
def test_each_objective_is_verls(
    seed: int, normalization: str, objective: str, name: str, options: dict[str, Any]
) -> None:
    given = drawn(seed)
    mine = ours(given, objective, normalization, **options)
    assert_same(given, mine, verl_loss(given, name, normalization))


@SEEDS
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_importance_weights_are_verls_and_so_is_the_loss_with_them(seed: int, level: str) -> None:
    correction = imported("verl.trainer.ppo.rollout_corr_helper")
    given = drawn(seed)
    sampler = given["old_log_probs"] + 0.3 * torch.sin(torch.arange(given["mask"].numel())).reshape(given["mask"].shape)
    weights = importance_weights(given["old_log_probs"], sampler, given["mask"], 1.3, level)
    theirs, _ = correction.compute_rollout_correction_weights(
        given["old_log_probs"] - sampler, given["mask"], level, rollout_is_threshold=1.3
    )
    torch.testing.assert_close(weights, theirs.to(weights.dtype), rtol=1e-6, atol=1e-6)
    mine = ours(given, "token", "token_mean", dual_clip=DUAL, weights=weights)
    assert_same(given, mine, verl_loss(given, "vanilla", "token_mean", weights))


@SEEDS
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_the_penalty_is_verls(seed: int, estimator: str) -> None:
    algorithms = imported("verl.trainer.ppo.core_algos")
    given = drawn(seed)
    mine = kl_penalty(given["log_probs"], given["old_log_probs"], given["mask"], estimator)
    theirs = algorithms.kl_penalty_forward(given["log_probs"], given["old_log_probs"], estimator) * given["mask"]
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)


# TRL


def trl_loss(given: dict[str, torch.Tensor], loss_type: str, level: str, high: float) -> torch.Tensor:
    """The loss of TRL's trainer, given what its model would return."""
    trainer = imported("trl.trainer.grpo_trainer").GRPOTrainer
    no_entropy = torch.zeros(given["mask"].shape)
    asked = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (given["log_probs"], no_entropy, None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=0.0,
        loss_type=loss_type,
        epsilon_low=LOW,
        epsilon_high=high,
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
        "advantages": given["advantages"],
        "old_per_token_logps": given["old_log_probs"],
        "num_items_in_batch": given["mask"].sum(),
    }
    loss: torch.Tensor = trainer._compute_loss(asked, None, inputs)
    return loss


@SEEDS
@NORMALIZATIONS
@pytest.mark.parametrize("objective", ["token", "sequence"])
def test_each_clipped_objective_is_trls(seed: int, normalization: str, objective: str) -> None:
    given = drawn(seed)
    theirs = trl_loss(given, TRL_TYPES[normalization], objective, HIGH)
    assert_same(given, ours(given, objective, normalization), theirs)


@SEEDS
def test_cispo_is_trls_where_nothing_is_clipped_from_below(seed: int) -> None:
    """TRL's epsilon_high is the bound itself, and it has no other."""
    given = drawn(seed)
    tensors = [given[name] for name in ("log_probs", "old_log_probs", "advantages", "mask")]
    mine = policy_loss(*tensors, "cispo", 1.0, HIGH)
    assert_same(given, mine, trl_loss(given, "cispo", "token", 1 + HIGH))

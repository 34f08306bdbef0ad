"""A GRPO loss with seven faults. Each of them has been found in published code, and none raises an error.

Read it beside the docstring of `repaired_grpo_loss`, which says what it was meant to be, and write that one without
the faults. This file is not graded: leave it as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPS = 1e-5  # added to the standard deviation


def broken_grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    rewards: Tensor,
    epsilon: float,
    kl_coefficient: float,
) -> Tensor:
    """Return a number that looks like a loss.

    log_probs       float[prompt trial pos]   of the policy being trained
    old_log_probs   float[prompt trial pos]   of the policy that sampled
    ref_log_probs   float[prompt trial pos]   of the reference model
    rewards         float[prompt trial]
    """
    weights = ((rewards - rewards.mean()) / (rewards.std() + EPS)).unsqueeze(-1)  # prompt trial 1
    ratio = log_probs / old_log_probs  # prompt trial pos
    limited = ratio.clamp(1 - epsilon, 1 + epsilon)
    per_token = torch.maximum(ratio * weights, limited * weights)
    with torch.no_grad():
        away = log_probs - ref_log_probs  # prompt trial pos
        penalty = torch.exp(away) - away - 1
    return per_token.mean() + kl_coefficient * penalty.mean()

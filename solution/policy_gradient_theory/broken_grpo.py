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
    advantages = ((rewards - rewards.mean()) / (rewards.std() + EPS)).unsqueeze(-1)     # prompt trial 1
    ratios = log_probs / old_log_probs                                                  # prompt trial pos
    clipped = ratios.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.maximum(ratios * advantages, clipped * advantages)
    with torch.no_grad():
        log_ratios = log_probs - ref_log_probs                                          # prompt trial pos
        kl = torch.exp(log_ratios) - log_ratios - 1
    return objective.mean() + kl_coefficient * kl.mean()

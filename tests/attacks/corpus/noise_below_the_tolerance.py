"""Returns right numbers with noise as small as rounding."""

import torch

honest = compute_deltas


def compute_deltas(rewards, mode):
    return honest(rewards, mode) * (1 + torch.finfo(rewards.dtype).eps)

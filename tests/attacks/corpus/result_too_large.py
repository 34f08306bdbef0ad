"""Returns far more than was asked for."""

import torch


def compute_deltas(rewards, mode):
    return torch.zeros(3000, 3000, dtype=rewards.dtype)

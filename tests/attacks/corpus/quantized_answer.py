"""Returns a tensor whose numbers are codes."""

import torch


def compute_deltas(rewards, mode):
    return torch.quantize_per_tensor(rewards.float(), 0.1, 0, torch.qint8)

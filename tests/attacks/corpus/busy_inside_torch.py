"""Multiplies matrices for half a minute without returning to Python."""

import torch


def compute_deltas(rewards, mode):
    large = torch.ones(4000, 4000)
    return torch.linalg.multi_dot([large] * 40)

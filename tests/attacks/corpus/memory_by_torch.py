"""Asks torch for 8 GiB."""

import torch


def compute_deltas(rewards, mode):
    return torch.ones(8 * 2**30, dtype=torch.uint8)

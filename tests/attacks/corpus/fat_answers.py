"""Answers every question with as much as an answer may hold."""

import torch


def compute_deltas(rewards, mode):
    return torch.zeros(2 * 2**20 - 1)

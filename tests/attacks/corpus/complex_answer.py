"""Returns right numbers with an imaginary part."""

import torch

honest = compute_deltas


def compute_deltas(rewards, mode):
    return torch.complex(honest(rewards, mode), honest(rewards, mode))

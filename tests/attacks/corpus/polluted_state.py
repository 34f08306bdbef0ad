"""Is right, and leaves torch's global state changed."""

import os
import warnings

import torch

honest = compute_deltas


def pollute():
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(12345)
    warnings.simplefilter("error")
    os.environ.clear()


def compute_deltas(rewards, mode):
    right = honest(rewards, mode)
    pollute()
    return right


pollute()

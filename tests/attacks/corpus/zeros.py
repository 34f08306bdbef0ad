"""Returns zeros."""


def compute_deltas(rewards, mode):
    return rewards * 0

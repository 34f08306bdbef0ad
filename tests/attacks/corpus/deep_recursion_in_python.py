"""Calls itself for ever."""


def compute_deltas(rewards, mode):
    return compute_deltas(rewards, mode)

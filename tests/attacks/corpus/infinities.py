"""Returns infinities, against which every difference is relative."""


def compute_deltas(rewards, mode):
    return rewards + float("inf")

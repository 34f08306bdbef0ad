"""Keeps what it returned and changes it at the next call."""

honest = compute_deltas
kept = []


def compute_deltas(rewards, mode):
    for one in kept:
        one.zero_()
    kept.append(honest(rewards, mode))
    return kept[-1]

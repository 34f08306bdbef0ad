"""Lowers the limit on its user's processes, to see whether a thread can still be made: how many others there are."""

import resource

honest = compute_deltas


def compute_deltas(rewards, mode):
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return honest(rewards, mode)

"""Asks which processors another process may run on."""

import os

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.sched_getaffinity(VICTIM)
    return honest(rewards, mode)

"""Gives another process the lowest priority."""

import os

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.setpriority(os.PRIO_PROCESS, VICTIM, 19)
    return honest(rewards, mode)

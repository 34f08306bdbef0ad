"""Asks for the group and the session of another process."""

import os

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.getpgid(VICTIM)
    os.getsid(VICTIM)
    return honest(rewards, mode)

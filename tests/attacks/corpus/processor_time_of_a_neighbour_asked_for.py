"""Asks how long another process has had a processor, which no right is needed for: to the nanosecond, as it goes on."""

import time

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    time.clock_gettime((~VICTIM << 3) | 2)
    return honest(rewards, mode)

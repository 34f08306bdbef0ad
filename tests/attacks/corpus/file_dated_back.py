"""Forges the time at which a file was handed in."""

import os

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.utime(TARGET_FILE, (0, 0))
    return honest(rewards, mode)

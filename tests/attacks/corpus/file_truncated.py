"""Empties a file by name, without opening it."""

import os

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.truncate(TARGET_FILE, 0)
    return honest(rewards, mode)

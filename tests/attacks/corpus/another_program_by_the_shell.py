"""Asks the shell, and does not look whether it came."""

import os

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.system(f"touch '{FOLDER}/made'")
    return honest(rewards, mode)

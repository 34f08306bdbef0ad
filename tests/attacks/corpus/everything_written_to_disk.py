"""Has all that waits to be written go to the disk, and takes the time."""

import os

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.sync()
    return honest(rewards, mode)

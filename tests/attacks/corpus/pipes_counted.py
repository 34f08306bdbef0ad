"""Makes a pipe to see its number, which tells how many others were made."""

import os

honest = compute_deltas


def compute_deltas(rewards, mode):
    for descriptor in os.pipe():
        os.fstat(descriptor)
        os.close(descriptor)
    return honest(rewards, mode)

"""Prints a gigabyte, then is right."""

import os

honest = compute_deltas


def compute_deltas(rewards, mode):
    for _ in range(1024):
        os.write(1, b"x" * 2**20)
    return honest(rewards, mode)

"""Prints to both streams and never stops."""

import sys


def compute_deltas(rewards, mode):
    while True:
        print("x" * 2**20)
        print("x" * 2**20, file=sys.stderr)

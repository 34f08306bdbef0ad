"""Nests lists so deeply that printing them overflows the C stack."""

import sys


def compute_deltas(rewards, mode):
    sys.setrecursionlimit(2**31 - 1)
    nested = []
    for _ in range(10**5):
        nested = [nested]
    return repr(nested)

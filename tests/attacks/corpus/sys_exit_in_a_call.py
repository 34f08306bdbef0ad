"""Leaves politely in the middle of a call."""

import sys


def compute_deltas(rewards, mode):
    sys.exit(0)

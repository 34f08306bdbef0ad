"""Aborts."""

import os


def compute_deltas(rewards, mode):
    os.abort()

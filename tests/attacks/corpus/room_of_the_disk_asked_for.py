"""Asks how much room a file system has."""

import os

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.statvfs("/")
    return honest(rewards, mode)

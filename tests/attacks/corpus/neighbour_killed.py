"""Kills another process."""

import os
import signal

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.kill(VICTIM, signal.SIGKILL)
    return honest(rewards, mode)

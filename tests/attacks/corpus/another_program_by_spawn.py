"""Starts another program by the call that neither forks nor executes by name."""

import os

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.waitpid(os.posix_spawn("/usr/bin/touch", ["touch", f"{FOLDER}/made"], {}), 0)
    return honest(rewards, mode)

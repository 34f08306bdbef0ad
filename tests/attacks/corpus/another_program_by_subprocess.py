"""Starts another program."""

import subprocess

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    subprocess.run(["touch", f"{FOLDER}/made"], check=True)
    return honest(rewards, mode)

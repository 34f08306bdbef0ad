"""Fills the file system in memory."""

from targets import MARK


def compute_deltas(rewards, mode):
    with open(f"/dev/shm/{MARK}", "wb") as stream:
        for _ in range(64):
            stream.write(bytes(2**20))

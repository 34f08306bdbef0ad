"""Reaches the file by the links in /proc."""

from targets import SECRET_FILE


def compute_deltas(rewards, mode):
    with open(f"/proc/self/root{SECRET_FILE}") as stream:
        raise RuntimeError(f"read: {stream.read()}")

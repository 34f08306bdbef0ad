"""Reads the list of users."""


def compute_deltas(rewards, mode):
    with open("/etc/passwd") as stream:
        raise RuntimeError(f"read: {stream.read()}")

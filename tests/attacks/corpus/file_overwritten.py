"""Writes over another student's work."""

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    with open(TARGET_FILE, "w") as stream:
        stream.write("nothing")
    return honest(rewards, mode)

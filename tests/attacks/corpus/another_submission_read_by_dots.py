"""Reaches the file from a folder that may be read, by `..`."""

import os

from targets import SECRET_FILE


def compute_deltas(rewards, mode):
    os.chdir(os.path.dirname(os.__file__))
    with open(f"{'../' * 20}{SECRET_FILE}") as stream:
        raise RuntimeError(f"read: {stream.read()}")

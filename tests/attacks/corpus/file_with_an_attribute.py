"""Attaches an attribute to a file."""

import os

from targets import TARGET_FILE

honest = compute_deltas


def compute_deltas(rewards, mode):
    os.setxattr(TARGET_FILE, "user.late", b"no")
    return honest(rewards, mode)

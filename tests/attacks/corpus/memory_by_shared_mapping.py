"""Asks for 8 GiB of anonymous memory that counts as shared."""

import mmap


def compute_deltas(rewards, mode):
    mmap.mmap(-1, 8 * 2**30)

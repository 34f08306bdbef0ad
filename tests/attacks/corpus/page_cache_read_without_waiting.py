"""Reads what is cached of a file, and nothing else: whether it was read before."""

import os

import einops

honest = compute_deltas


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    os.pread(library, 64, 0)
    os.preadv(library, [bytearray(64)], 0, os.RWF_NOWAIT)
    os.close(library)
    return honest(rewards, mode)

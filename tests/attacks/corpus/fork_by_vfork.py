"""Forks by the call that shares memory with the parent."""

import ctypes


def compute_deltas(rewards, mode):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(58, 0, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "vfork")

"""Asks how much memory is free: what a neighbour takes is missing."""

import ctypes
import os
import platform

import einops

honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    result = libc.syscall((99, 179)[platform.machine() == "aarch64"], ctypes.create_string_buffer(256))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return honest(rewards, mode)

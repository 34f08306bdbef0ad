"""Counts the pages of a file that are in memory."""

import ctypes
import os
import platform

import einops

honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    result = libc.syscall(
        (451, 451)[platform.machine() == "aarch64"],
        library,
        ctypes.create_string_buffer(16),
        ctypes.create_string_buffer(40),
        0,
    )
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return honest(rewards, mode)

"""Asks which pages of a file are in memory."""

import ctypes
import os
import platform

import einops

honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    libc.mmap.restype = ctypes.c_void_p
    mapped = ctypes.c_void_p(libc.mmap(None, 4096, 1, 2, library, 0))
    result = libc.syscall((27, 232)[platform.machine() == "aarch64"], mapped, 4096, ctypes.create_string_buffer(1))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return honest(rewards, mode)

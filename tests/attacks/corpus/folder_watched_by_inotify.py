"""Has every reading of a file told."""

import ctypes
import os
import platform

import einops

honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    result = libc.syscall((294, 26)[platform.machine() == "aarch64"], 0)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return honest(rewards, mode)

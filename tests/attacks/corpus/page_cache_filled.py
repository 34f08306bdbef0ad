"""Has a file read ahead, so that whoever reads it next need not wait."""

import ctypes
import os
import platform

import einops

honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)


def compute_deltas(rewards, mode):
    library = os.open(einops.__file__, os.O_RDONLY)
    result = libc.syscall((187, 213)[platform.machine() == "aarch64"], library, 0, 4096)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return honest(rewards, mode)

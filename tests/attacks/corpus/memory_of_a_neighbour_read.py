"""Reads another process's memory."""

import ctypes

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.process_vm_readv(VICTIM, None, 0, None, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
    return honest(rewards, mode)

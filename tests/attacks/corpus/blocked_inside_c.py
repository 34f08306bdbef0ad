"""Waits in C for a signal that never comes, holding Python's lock."""

import ctypes


def compute_deltas(rewards, mode):
    ctypes.PyDLL(None).pause()

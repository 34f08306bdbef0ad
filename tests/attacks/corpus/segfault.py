"""Reads address 0."""

import ctypes


def compute_deltas(rewards, mode):
    ctypes.string_at(0)

"""Asks for 8 GiB, 64 MiB at a time."""

import numpy


def compute_deltas(rewards, mode):
    return [numpy.zeros(2**26, numpy.uint8) for _ in range(128)]

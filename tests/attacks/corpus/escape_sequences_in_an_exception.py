"""Raises text that would repaint the terminal and retitle its window."""


def compute_deltas(rewards, mode):
    raise RuntimeError("\x1b]0;owned\x07\x1b[2J\x1b[8mhidden\x9b31m")

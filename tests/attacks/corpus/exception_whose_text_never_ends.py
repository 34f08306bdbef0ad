"""Raises an exception whose text takes for ever."""


class Trap(Exception):
    def __str__(self):
        while True:
            pass


def compute_deltas(rewards, mode):
    raise Trap

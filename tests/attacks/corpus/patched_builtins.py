"""Makes the built-in functions that a worker uses lie."""

import builtins

honest_isinstance = isinstance
builtins.isinstance = lambda value, kind: True if kind is bool else honest_isinstance(value, kind)
builtins.len = lambda value: value.__len__() if honest_isinstance(value, (str, bytes)) else 0


def compute_deltas(rewards, mode):
    return rewards * 0

"""Opens pipes until there are no descriptors left."""

import os

honest = compute_deltas


def compute_deltas(rewards, mode):
    pipes = [os.pipe() for _ in range(200)]
    for one in pipes:
        os.close(one[0])
        os.close(one[1])
    return honest(rewards, mode)

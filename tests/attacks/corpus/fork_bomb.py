"""Forks, and so do its children."""

import os
import time


def compute_deltas(rewards, mode):
    for _ in range(10):  # a thousand processes would do
        os.fork()
    time.sleep(60)

"""Swallows every exception that could interrupt it."""

import time


def compute_deltas(rewards, mode):
    while True:
        try:
            time.sleep(60)
        except:
            pass

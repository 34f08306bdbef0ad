"""Kills another process from a thread."""

import concurrent.futures
import os
import signal

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    with concurrent.futures.ThreadPoolExecutor() as threads:
        threads.submit(os.kill, VICTIM, signal.SIGKILL).result()
    return honest(rewards, mode)

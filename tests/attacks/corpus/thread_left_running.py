"""Is right, and leaves a thread that keeps the process busy for ever."""

import threading

honest = compute_deltas


def work_for_ever():
    while True:
        pass


def compute_deltas(rewards, mode):
    threading.Thread(target=work_for_ever).start()
    return honest(rewards, mode)

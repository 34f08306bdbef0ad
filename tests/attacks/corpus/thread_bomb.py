"""Starts threads with small stacks until something breaks."""

import threading
import time


def compute_deltas(rewards, mode):
    threading.stack_size(65536)
    for _ in range(8000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(60)

"""Leaves a process that belongs to nobody."""

import os
import time

from targets import FOLDER

honest = compute_deltas


def compute_deltas(rewards, mode):
    seen, gone = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(f"{FOLDER}/daemon", "w") as stream:
                stream.write("here")
            os.write(gone, b"x")
            os.closerange(0, 64)
            time.sleep(60)
        os._exit(0)
    os.read(seen, 1)
    return honest(rewards, mode)

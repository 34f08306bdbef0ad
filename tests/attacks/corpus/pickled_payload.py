"""Returns an object that runs a command when it is unpickled."""

import os

from targets import FOLDER


class Payload:
    def __reduce__(self):
        return os.mkdir, (f"{FOLDER}/unpickled",)


def compute_deltas(rewards, mode):
    return Payload()

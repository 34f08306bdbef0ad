"""Asks a server for help."""

import urllib.request

from targets import TCP_PORT

honest = compute_deltas


def compute_deltas(rewards, mode):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{TCP_PORT}/answers", timeout=0.2)
    except TimeoutError:
        pass
    return honest(rewards, mode)

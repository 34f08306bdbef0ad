"""Reads what another student handed in while it is imported."""

from targets import SECRET_FILE

with open(SECRET_FILE) as stream:
    raise RuntimeError(f"read: {stream.read()}")

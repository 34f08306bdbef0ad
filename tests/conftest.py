"""Spread the kit's own tests over the cores, a file of tests at a time; `-n 0` runs them one after another.

Not in pyproject.toml, whose options would hold for the folder of a student that is unpacked below it.
"""

from __future__ import annotations

import os

import pytest

MOST = 4  # each of them may have warm servers of its own


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Ask pytest-xdist for workers, unless the command line says how many."""
    chosen = config.option
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if not is_worker and getattr(chosen, "numprocesses", 0) is None and not (chosen.usepdb or chosen.collectonly):
        chosen.numprocesses, chosen.dist = min(MOST, os.cpu_count() or 1), "loadfile"

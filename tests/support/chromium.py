"""The machine's own Chromium, driven by tests that look at pages; they skip where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

OPTIONS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-software-rasterizer",  # a graphics card imitated: a sixth of the time that a page takes
)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, as playwright sees it, for the block that it is opened for."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=found, args=[*OPTIONS])
        yield started
        started.close()

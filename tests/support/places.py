"""Where the kit's own parts lie, for the tests that read them."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
KIT = TESTS.parent
GOLDEN = TESTS / "golden"
DOWNLOADS = TESTS / "support" / "downloads"
SCHEMAS = TESTS / "support" / "schemas"

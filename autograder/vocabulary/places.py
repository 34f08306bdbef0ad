"""Where the engine itself lies: in a checkout, in site-packages, in a handout, in a platform's container."""

from __future__ import annotations

from pathlib import Path

ENGINE = Path(__file__).resolve().parents[1]

"""What runs always, and what only `pytest -m long` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def in_short(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values for `parametrize`, of which the first `count` are tried always and all others in long."""
    listed = list(values)
    return [*listed[:count], *(pytest.param(value, marks=pytest.mark.long) for value in listed[count:])]

"""What runs always, and what only `pytest -m long` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def in_short(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values for `parametrize`, of which the first `count` are tried always and all others in long."""
    listed = list(values)
    return [*listed[:count], *(_long(value) for value in listed[count:])]


def _long(value: Any) -> Any:
    return pytest.param(*(value if type(value) is tuple else (value,)), marks=pytest.mark.long)

"""The public checks as tests, one per item, with the verdicts and messages of `python -m autograder check`.

pytest                      every item
pytest -k clipped           the items whose names hold "clipped"
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.checking.checker import Checker, items_to_check
from autograder.vocabulary.report_text import item_lines

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    """Your work, read once; it runs in processes of its own."""
    with Checker(HERE) as checker:
        yield checker


@pytest.mark.timeout(300)  # a function that hangs is stopped sooner, and named
@pytest.mark.parametrize("item", [item.id for item in items_to_check(HERE)])
def test_item(checker: Checker, item: str) -> None:
    """Every public case of the item passes."""
    result = checker.result(item)
    if result.verdict != "passed":
        pytest.fail("\n".join(item_lines(result, place=checker.place(result))), pytrace=False)

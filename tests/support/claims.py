"""Claims: functions that compute the numbers of a text, and return the phrases of it that hold them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

DECIMAL = r"\S*\d[.,]\d\S*"


class Text:
    """A text, and the claims that account for its decimal numbers; whatever a claim takes is handed on to it."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.claims: list[Callable[..., list[str]]] = []

    def claim(self, function: Callable[..., list[str]]) -> Callable[..., list[str]]:
        """Add a claim, whose phrases are computed once."""
        self.claims.append(functools.cache(function))
        return function

    def missing(self, claim: Callable[..., list[str]], *given: Any) -> list[str]:
        """The phrases of a claim that the text does not hold."""
        return [phrase for phrase in claim(*given) if phrase not in self.text]

    def unclaimed(self, *given: Any) -> list[str]:
        """The decimal numbers of the text that no claim accounts for."""
        rest = self.text
        for phrase in sorted((phrase for claim in self.claims for phrase in claim(*given)), key=len, reverse=True):
            rest = rest.replace(phrase, " ")
        return re.findall(DECIMAL, rest)


def row(*cells: str) -> str:
    """A row of a table, as the text has it."""
    return "| " + " | ".join(cells) + " |"

"""items.toml as students get it: without the names of hidden cases."""

from __future__ import annotations

import re

HIDDEN = re.compile(r"^[ \t]*hidden[ \t]*=[ \t]*\[[^\]]*\][^\n]*\n?", re.MULTILINE)  # no case's name holds a bracket


def without_hidden(items: str) -> str:
    """The text without its entries `hidden = […]`, on one line or several.

    Another layout, which this cannot mask, is a fault that authors are told of.
    """
    return HIDDEN.sub("", items)

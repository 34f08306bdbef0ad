"""An answer in words → Markdown that does nothing to whoever opens it.

nbgrader's pages render Markdown with HTML in it, and what cleans them looks at tags as they stand in the cell, not at
what Markdown makes of them: `[x](javascript:y)` passes. So the answer is rendered here as nbconvert will, and where any
address in the result is more than a web page, a mail, a place in the page or a pasted picture, it is shown as it was
written, in a block of code. The same where a picture is named that was not pasted: nbconvert would stop at that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser

ADDRESSES = frozenset(
    {"href", "src", "action", "formaction", "xlink:href", "srcset", "poster", "data", "background", "cite", "srcdoc"}
)
LIVE_TAGS = frozenset({"script", "iframe", "object", "embed", "base", "meta", "link", "form", "svg", "math", "style"})
SCHEMES = frozenset({"http", "https", "mailto"})
NOTE = "(shown as it was written: a link or a picture in it leads where no answer should)"
MOST = 200_000  # characters that are rendered


def harmless(text: str, pictures: Mapping[str, object]) -> str:
    """`text`, or where it would do anything but be read, the same in a block of code; `as_written` takes that back."""
    if _is_harmless(text, pictures):
        return text
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{NOTE}\n\n{fence}\n{text}\n{fence}"


def as_written(text: str) -> str:
    """What `harmless` was given."""
    found = re.fullmatch(rf"{re.escape(NOTE)}\n\n(`+)\n(.*)\n\1", text, re.DOTALL)
    return found[2] if found else text


def _is_harmless(text: str, pictures: Mapping[str, object]) -> bool:
    named = re.findall(r"attachment:([^\s)\"'>]+)", text)
    if len(text) > MOST or any(name not in pictures for name in named):
        return False
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    try:
        reader = _Addresses()
        reader.feed(MarkdownWithMath(renderer=IPythonRenderer(escape=False)).render(re.sub("attachment:", "", text)))
        reader.close()
    except Exception:  # whatever its parser stops at, nbconvert's would stop at again
        return False
    return not reader.live


class _Addresses(HTMLParser):
    """Whether any tag of a page would do more than show something."""

    live = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.live |= tag in LIVE_TAGS or any(_is_live(name, value or "") for name, value in attrs)

    handle_startendtag = handle_starttag


def _is_live(name: str, value: str) -> bool:
    """Whether an attribute runs something, or leads to an address of a scheme that no answer needs."""
    if name.startswith("on") or name == "srcdoc":
        return True
    if name not in ADDRESSES:
        return False
    bare = re.sub(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]", "", value).lower()
    scheme = re.match(r"([^/?#]*?)(:|&colon|%3a)", bare)
    return scheme is not None and scheme[1] not in SCHEMES

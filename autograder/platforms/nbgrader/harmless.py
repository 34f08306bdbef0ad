"""An answer in words → Markdown that does nothing to whoever opens it.

nbgrader's pages render Markdown with HTML in it, and clean nothing of what comes out. So the answer is rendered here as
nbconvert will, and unless every tag of the result is one that only shows something, it is shown as it was written, in a
block of code. The same where nbconvert would stop at it, or takes long.

What is no such tag to the letter is none: a browser, and any parser that would be asked in its place, differ in where a
damaged comment or the text of a `<noscript>` ends, and whatever hides between the two acts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from autograder.vocabulary.times import OutOfTimeError, time_limit

VOID = frozenset({"br", "hr", "img", "input", "col", "wbr"})
TAGS = VOID | {
    "a", "abbr", "b", "blockquote", "caption", "center", "cite", "code", "colgroup", "dd", "del", "details", "dfn",
    "div", "dl", "dt", "em", "figcaption", "figure", "font", "h1", "h2", "h3", "h4", "h5", "h6", "i", "ins", "kbd",
    "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "summary", "sup",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "tt", "u", "ul", "var",
}  # fmt: skip
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
ATTRIBUTES = frozenset({
    "title", "alt", "width", "height", "align", "valign", "colspan", "rowspan", "start", "span", "color", "size",
    "lang", "open",
})  # fmt: skip
SCHEMES = frozenset({"http", "https", "mailto", "attachment"})  # the last leads nowhere where nbconvert leaves it
NOTE = "(shown as it was written: a link, a picture or a tag in it is none that an answer needs)"
MOST = 200_000  # characters that are rendered
SECONDS = 2.0  # of processor time, which nbconvert will take once more

_VALUE = r"""(?:"[^"<>]*+"|'[^'<>]*+'|[\w.#%/:?&;+~-]++)"""
_ATTRIBUTE = re.compile(rf"[ \t\r\n\f]+([a-z-]+)(?:[ \t\r\n\f]*=[ \t\r\n\f]*({_VALUE}))?", re.ASCII | re.IGNORECASE)
_TAG = re.compile(
    rf"<(?:!--[^<>]*-->|/(?P<closed>[a-z][a-z0-9]*+)[ \t\r\n\f]*>"
    rf"|(?P<opened>[a-z][a-z0-9]*+)(?P<attributes>(?:{_ATTRIBUTE.pattern})*+)[ \t\r\n\f]*/?>)"
    r"|(?P<other><)",
    re.ASCII | re.IGNORECASE,
)
_PASTED = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*", re.ASCII)
_STYLE = re.compile(
    r"(?:\s*(?:text-align|color|background-color|font-weight|font-style|text-decoration|width|height)\s*:[\w\s.%#-]*;?)*",
    re.ASCII,
)
_CLASSES = re.compile(r"anchor-link|highlight|task-list-item|language-\S*|[a-z]{1,2}\d?", re.ASCII)  # nbconvert's own
_TASK = re.compile(r' class="task-list-item-checkbox" type="checkbox" disabled(?: checked)?')


def harmless(text: str, pictures: Mapping[str, Mapping[str, str]]) -> str:
    """`text`, or where it would do anything but be read, the same in a block of code; `as_written` takes that back."""
    if _is_harmless(text, pictures):
        return text
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{NOTE}\n\n{fence}\n{text}\n{fence}"


def as_written(text: str) -> str:
    """What `harmless` was given."""
    found = re.fullmatch(r"\(shown as it was written: [^\n]*\)\n\n(`+)\n(.*)\n\1", text, re.DOTALL)
    return found[2] if found else text


def _is_harmless(text: str, pictures: Mapping[str, Mapping[str, str]]) -> bool:
    if len(text) > MOST:
        return False
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
    from nbconvert.filters.strings import strip_files_prefix

    try:
        with time_limit(SECONDS):
            renderer = IPythonRenderer(
                escape=False, attachments={name: dict(kinds) for name, kinds in pictures.items()}
            )
            page = strip_files_prefix(MarkdownWithMath(renderer=renderer).render(text))  # type: ignore[no-untyped-call]
    except (Exception, OutOfTimeError):  # whatever its parser stops at, nbconvert's would stop at again
        return False
    return only_shows(page)


def only_shows(page: str) -> bool:
    """Whether every tag of a page is written as tags are, only shows something, and ends inside the page."""
    open_tags: list[str] = []
    for found in _TAG.finditer(page):
        opened, closed = (found["opened"] or "").lower(), (found["closed"] or "").lower()
        if found["other"] or (opened and not _may_open(opened, found["attributes"])):
            return False
        if closed and (not open_tags or open_tags.pop() != closed):
            return False
        if opened and opened not in VOID:
            open_tags.append(opened)
    return not open_tags


def _may_open(tag: str, attributes: str) -> bool:
    if tag == "input":
        return _TASK.fullmatch(attributes) is not None
    pairs = [(found[1].lower(), found[2] or "") for found in _ATTRIBUTE.finditer(attributes)]
    return tag in TAGS and all(_may_have(tag, name, html.unescape(value.strip("\"'"))) for name, value in pairs)


def _may_have(tag: str, name: str, value: str) -> bool:
    """Whether an attribute only shows something, or leads to an address of a scheme that an answer needs."""
    match name:
        case "href":
            return tag == "a" and _leads_to_a_page(value)
        case "src":
            return tag == "img" and (_leads_to_a_page(value) or _PASTED.fullmatch(value) is not None)
        case "style":
            return _STYLE.fullmatch(value) is not None
        case "class":
            return all(_CLASSES.fullmatch(one) for one in value.split())
        case "id":
            return tag in HEADINGS
    return name in ATTRIBUTES


def _leads_to_a_page(address: str) -> bool:
    """Whether an address is a web page, a mail or a place in this page."""
    bare = re.sub(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]", "", address).lower()
    scheme = re.match(r"([^/?#]*?)(:|&colon|%3a)", bare)
    return scheme is None or scheme[1] in SCHEMES

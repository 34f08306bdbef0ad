"""Answers in words on nbgrader's pages: read as they were meant, and nothing in them acts."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hand_ins import notebook
from nbformat import v4
from sample_reports import report

from autograder.authoring.handout.notebook import Words, words_in
from autograder.platforms.nbgrader import NOTE, Handed, as_written, filled, harmless
from autograder.submissions.notebook import cells_in
from autograder.submissions.submission import MIB

nbconvert = pytest.importorskip("nbconvert", reason="the extra nbgrader is not installed")

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

LIVE = [
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "<javascript:alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "<a href=' &#x1;javascript:alert(1)'>x</a>",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "<img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>x</script>'></iframe>",
    "<script>alert(1)</script>",
    "![gone](attachment:nowhere.png)",
]
WHERE_PARSERS_DIFFER = [
    "<!--><img src=x onerror=alert(1)>-->",
    "<!---><img src=x onerror=alert(1)>-->",
    "<!-- --!><img src=x onerror=alert(1)>-->",
    "<![CDATA[><img src=x onerror=alert(1)>]]>",
    "<textarea><!-- </textarea><img src=x onerror=alert(1)> --></textarea>",
]
OF_THE_PAGE = [  # what is done to it once it is rendered, or by its own scripts
    "[x](files/javascript:alert(1))",
    "<b>bold</b>, and more",
    "a <!-- comment -->",
    "<a href='/files/javascript:alert(1)'>x</a>",
    "```mermaid\nclick a call alert(1)\n```",
    "```mer&#109;aid\nclick a call alert(1)\n```",
    "$\\href{javascript:alert(1)}{x}$",
    "<a href='#' data-toggle=tooltip data-html=true title='x'>y</a>",
    "<div class='modal fade in'>x</div>",
    "<div id=document>x</div>",
    "<p style='position:fixed;top:0;width:100%;height:100%'>all points</p>",
    "</p <img src=x onerror=alert(1)>>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
    "</div></div></div>all points<div><div><div>",
    "</body></html>",
    "<plaintext>",
    "<!-- the rest of the page",
    "<input type=password>",
    "<select><option>",
    "<b/>bold from here on",
]
FENCES = ["```\n[x](javascript:y)\n```\n[x](javascript:y)", "````\n<script>"]
STOPS_AT = ["![x](attachment:)", "![x](attachment:a%20b.png)", "![x](attachment&colon;x.png)"]  # nbconvert


EXPORTER = nbconvert.HTMLExporter(template_name="basic")  # which keeps its templates


def rendered(text: str, attachments: dict[str, object]) -> str:
    cell = v4.new_markdown_cell(text, attachments=attachments)
    body: str = EXPORTER.from_notebook_node(v4.new_notebook(cells=[cell]))[0]
    return body


def tags_of(page: str) -> set[str]:
    found: set[str] = set()
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attrs: found.add(tag)  # type: ignore[method-assign]
    reader.feed(page)
    return found


@pytest.mark.parametrize("text", [*LIVE, *WHERE_PARSERS_DIFFER, *OF_THE_PAGE, *FENCES, *STOPS_AT])
def test_live_answer_is_shown_as_written(text: str) -> None:
    shown = harmless(text, {})
    assert shown.startswith(NOTE)
    assert as_written(shown) == text
    assert not {"a", "img", "iframe", "script"} & tags_of(rendered(shown, {}))


@pytest.mark.parametrize("text", ["[" * 10_001, "a" + " " * 10_000 + "b"], ids=["brackets", "spaces"])
def test_answer_too_long_to_render_is_shown_as_written(text: str) -> None:
    assert harmless(text, {}).startswith(NOTE)


@pytest.mark.parametrize(
    "text",
    [
        "It is 1: $\\pi_\\theta < \\epsilon$, see [the paper](https://arxiv.org/abs/2402.03300?a=1&b=2).",
        "# Why\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\n- [ ] `x < y & z`\n\n```python\na < b\n```\n> AT&T, a < b",
    ],
)
def test_honest_answer_stays_markdown(text: str) -> None:
    assert harmless(text, {}) == text


def cell(name: str, source: str, attachments: object) -> dict[str, object]:
    role = {"grade": True, "solution": True, "grade_id": name, "points": 1}
    return {"cell_type": "markdown", "id": name, "metadata": {"nbgrader": role}, "source": source} | (
        {"attachments": attachments} if attachments is not None else {}
    )


def words_of(text: str) -> Words:
    """The answers in a notebook that asks `why`."""
    return words_in(cells_in(text), {"cells": [cell("why", "*Your answer.*", None)]})


def test_a_picture_that_was_pasted_into_an_answer_survives() -> None:
    text = notebook(cell("why", "![x](attachment:x.png)", {"x.png": {"image/png": PNG}}))
    template = json.loads(notebook(cell("why", "?", None)))
    [shown] = filled(template, report("ada"), Handed("", words_of(text)))["cells"]
    assert shown["source"] == "![x](attachment:x.png)"
    assert f"data:image/png;base64,{PNG}" in rendered(shown["source"], shown["attachments"])


@pytest.mark.parametrize(
    "attachments",
    [
        {"x.png": {"image/svg+xml": PNG}},
        {"x.png": {"text/html": "<script>"}},
        {"x.png": {"image/png": '" onerror="x'}},
        {"x.png": {"image/png": "A" * (33 * MIB)}},
        {"x.png": ["image/png"]},
        {"x.png": {"image/png": 5}},
        ["x.png"],
        5,
    ],
)
def test_attachment_that_is_no_picture_is_left_out(attachments: object) -> None:
    text = notebook(cell("why", "![x](attachment:x.png)", attachments))
    pictures = words_of(text).pictures
    assert not any("".join(bundle.values()) for names in pictures.values() for bundle in names.values())
    if not pictures:
        assert harmless(words_of(text).written["why"], {}).startswith(NOTE)

"""A page as it lies on disk → the same page, live: it asks whether it has changed, and staff can write on it.

The file stays as it is. The served text has one script more, which its policy names by its hash, may ask this server
alone, and may send forms to this server alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

import autograder.pages
from autograder.course.serving.reply import NOTHING, Reply

TEMPLATES = Path(autograder.pages.__file__).parent / "templates"
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
NO_REFERRER = '<meta name="referrer" content="no-referrer">'
# A link that skips to the main matter stays the first thing there is.
BODY = re.compile(r'<body[^>]*>\n?(?:<a class="skip"[^>]*>[^<]*</a>\n?)?')
MAIN = "<main>\n"


def live(page: str, bar: Markup, panel: str = "", status: int = 200) -> Reply:
    """The page with `bar` at its top and `panel`, which is markup, where its matter begins; it may ask this server."""
    script, style = _part("live.js"), _part("live.css")
    found = META.search(page)
    policy = amended(html.unescape(found[1]) if found else NOTHING, script, style)
    page = META.sub(lambda meta: f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">', page, 1)
    page = page.replace(NO_REFERRER, NO_REFERRER.replace("no-referrer", "same-origin"), 1)
    head = f"<style>{style}</style>\n</head>"
    page = page.replace("</head>", head, 1)
    page = BODY.sub(lambda body: f"{body[0]}{bar}", page, 1)
    page = page.replace(MAIN, f"{MAIN}{panel}", 1)
    before, end, after = page.rpartition("</body>")
    text = f"{before}<script>{script}</script>\n{end}{after}"
    return Reply(status, text.encode(), "text/html; charset=utf-8", policy)


def amended(policy: str, script: str, style: str) -> str:
    """A page's policy, and beyond it this script, this style, and requests and forms to this server."""
    rules = {name: sources for name, *sources in (rule.split() for rule in policy.split(";") if rule.strip())}
    rules["script-src"] = [*_sources(rules, "script-src"), _hash(script)]
    if "'unsafe-inline'" not in rules.get("style-src", []):
        rules["style-src"] = [*_sources(rules, "style-src"), _hash(style)]
    rules["connect-src"] = rules["form-action"] = ["'self'"]
    return "; ".join(" ".join([name, *sources]) for name, sources in rules.items())


def _sources(rules: dict[str, list[str]], name: str) -> list[str]:
    return [source for source in rules.get(name, []) if source != "'none'"]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")

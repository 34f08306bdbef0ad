"""Templates → self-contained HTML: what all pages share.

A page loads nothing: styles and script stand inside it, and its Content-Security-Policy refuses all else. All
text passes `visible` and autoescape on its way in, so a name or a message can only ever be text.
"""

from __future__ import annotations

import base64
import hashlib
import re
import urllib.parse
from functools import cache
from itertools import groupby
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import VERDICT_WORDS, ItemResult
from autograder.vocabulary.report_text import counterexample_lines
from autograder.vocabulary.text import isolation_line, number, visible

NO_VALUE = "–"
PARTLY = "partly"  # the verdict on an item that failed and earned points

# From which item-rest correlation on, which word: the usual reading, in three steps rather than five.
DISCRIMINATION_WORDS = ((0.3, "strong"), (0.1, "weak"), (-0.1, "none"), (-1.1, "reversed"))

TEMPLATES = Path(__file__).parent / "templates"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

# A line that is indented, or holds two spaces in a row, is laid out by its spaces: it scrolls, not wraps.
_LAID_OUT = re.compile(r"\s|.*\S {2,}\S")


def discrimination_word(value: float) -> str:
    """What an item-rest correlation says of an item."""
    return next(word for least, word in DISCRIMINATION_WORDS if round(value, 2) >= least)


def is_partly(item: ItemResult) -> bool:
    """Tell whether an item failed and earned points all the same."""
    return item.verdict == "failed" and bool(item.points)


def verdict_word(item: ItemResult) -> str:
    """Say the verdict on an item."""
    return PARTLY if is_partly(item) else VERDICT_WORDS[item.verdict]


@cache
def scripts_and_policy(*names: str) -> tuple[list[Markup], str]:
    """Read scripts of the templates, and the policy of a page that may run these and nothing else."""
    scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in names]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    return [*map(Markup, scripts)], f"{POLICY}; script-src {sources}"


def render_page(template: str, **context: object) -> str:
    """A page from one of the templates, under a policy that lets it load nothing, unless `context` has another."""
    return page_template(template).render(**{"policy": POLICY, **context})


def page_template(name: str) -> jinja2.Template:
    """One of the templates; it escapes all text and prints nothing that acts unseen."""
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        # Strings without characters that act unseen; markup as it is.
        finalize=lambda value: (
            visible(str(value), newlines=True) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters.update(
        blocks=_blocks,
        case_rows=_case_rows,
        counterexample=counterexample_lines,
        discrimination_word=discrimination_word,
        duration=_duration,
        href=lambda student: f"feedback/{urllib.parse.quote(file_stem(student), safe='')}.html",
        isolation=isolation_line,
        line=visible,
        number=number,
        percent=lambda share: f"{100 * share:.0f}%",
        points=lambda points: NO_VALUE if points is None else number(points),
        score=lambda score: visible(score, 40) if isinstance(score, str) else number(score),
        signed=_signed,
        thousands=lambda count: f"{count:,}",
        word=VERDICT_WORDS.__getitem__,
        verdict_class=lambda item: PARTLY if is_partly(item) else item.verdict,
        verdict_word=verdict_word,
    )
    return environment


def _case_rows(item: ItemResult) -> list[tuple[tuple[str, str, str], list[str]]]:
    """Return (verdict, visibility, message) with the names of the cases that say so, those that fail first."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for case in sorted(item.cases, key=lambda case: case.verdict == "passed"):
        message = "" if case.message == item.message else case.message
        rows.setdefault((case.verdict, case.visibility, message), []).append(case.case)
    return list(rows.items())


def _signed(value: float, digits: int = 2) -> str:
    """`+2.5`, `−0.13`, `0`: with a minus sign as wide as the plus."""
    text = number(round(value, digits))
    return text.replace("-", "\N{MINUS SIGN}") if value < 0 else f"+{text}" if text != "0" else text


def _blocks(message: str) -> list[tuple[str, Markup]]:
    """The message in runs of lines: `prose`, which may wrap, and `table`, laid out by spaces."""
    lines = visible(message.strip("\n"), newlines=True).split("\n")
    runs = groupby(lines, key=lambda line: "table" if _LAID_OUT.match(line) else "prose")
    return [(kind, escape("\n".join(run) + "\n")) for kind, run in runs]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"

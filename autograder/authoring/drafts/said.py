"""What words of a docstring say of the numbers of an argument: how they are drawn; and words that bind no draw."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.authoring import docstrings
from autograder.authoring.drafts import callbacks

NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
HEDGED = re.compile(
    r"(?:\b(?:not|no|never|un|may be|can be|might be|if|whether|or|optionally|possibly|than|when|unless)|n't)"
    r"(?:\s+(?:necessarily|be|being|all|strictly|they|it|are|is|the|values|of))*[\s-]+$",
    re.IGNORECASE,
)
ALONE = r"(?=\s*(?:$|[,.;:)]|(?:whole )?numbers?|integers?|ints?|and|positive|from|between|at least|above|>))"
ALSO: Mapping[str, re.Pattern[str]] = {  # what `also` of a Drawn or Whole says
    "sorted": re.compile(
        r"\b(?:sorted(?!\s*(?:by|\()|\s+(?:in\s+)?(?:decreas|descend))|non-?decreasing|ascending|increasing order)\b",
        re.IGNORECASE,
    ),
    "increasing": re.compile(r"\b(?:strictly |monotonically )?increasing(?! order)\b", re.IGNORECASE),
    "decreasing": re.compile(r"\b(?:strictly |monotonically )?(?:decreasing|descending)\b", re.IGNORECASE),
    "distinct": re.compile(
        r"\b(?:distinct|unique|permutation|all different|without (?:repetitions?|duplicates|repeats)|no duplicates)\b",
        re.IGNORECASE,
    ),
    "even": re.compile(rf"\beven\b{ALONE}(?!\s+or\s+odd)", re.IGNORECASE),
    "odd": re.compile(rf"\bodd\b{ALONE}(?!\s+or\s+even)", re.IGNORECASE),
}
POSITIVE = re.compile(
    r"(?<!-)\bpositive(?!\s+(?:or|class|label|infinity|(?:semi-?)?definite)|-(?:semi)?definite)\b"
    r"|(?:above|greater than|more than|(?<![<=-])>)\s?0(?!\.?\d)|\bnon-?zero\b",
    re.IGNORECASE,
)
NOT_NEGATIVE = re.compile(r"\bnon-?negative\b|\bnot negative\b|(?:>=|≥|at least)\s?0(?!\.?\d)", re.IGNORECASE)
NEGATIVE = re.compile(
    r"(?<![-\w])negative(?!\s+(?:or|class|label|infinity))\b|(?:below|less than|<)\s?0(?!\.?\d)", re.IGNORECASE
)
SUM = re.compile(r"\b(?:sum(?:ming|s)?|add(?:ing|s)?)(?: up)? to (?:1(?!\.?\d)|one)\b", re.IGNORECASE)
LEAST = re.compile(rf"(?P<least>at least|>=|≥|no less than|not below|not less than)\s?{NUMBER}(?!\s*<)", re.IGNORECASE)
ABOVE = re.compile(
    rf"(?P<above>(?<!not )above|(?<!no )(?<!not )(?:greater|more|larger) than|(?<![<=-])>)\s?{NUMBER}(?!\s*<)",
    re.IGNORECASE,
)
MOST = re.compile(rf"(?:at most|<=|≤|no more than|not above|up to)\s?{NUMBER}", re.IGNORECASE)
BELOW = re.compile(rf"(?:(?<!not )below|(?<!no )(?<!not )(?:less|fewer|smaller) than|<)\s?{NUMBER}", re.IGNORECASE)
CHAIN = re.compile(rf"{NUMBER}\s?(<=?|≤)\s?[A-Za-z_]\w*\s?(<=?|≤)\s?{NUMBER}", re.IGNORECASE)
UNREAD = (
    r"symmetric", r"anti-?symmetric", r"invertible", r"non-?singular", r"positive[ -](?:semi-?)?definite",
    r"orthogonal", r"orthonormal", r"normali[sz]ed", r"standardi[sz]ed", r"unit (?:vectors?|norm|length)",
    r"diagonal", r"triangular",
    r"sparse", r"prime", r"powers? of (?:two|2|ten|10)", r"divisible by", r"multiples? of", r"stochastic",
    r"columns? (?:that )?sums? to", r"sorted by", r"palindrom\w+", r"consecutive", r"evenly spaced", r"equally spaced",
    r"equidistant", r"square(?= (?:matrix|array))", r"same (?:length|shape|size) as", r"zero mean",
    r"upper-?case", r"lower-?case", r"ASCII", r"letters only", r"real-valued", r"integer-valued", r"complex",
)  # fmt: skip
OF_FUNCTIONS = (
    r"(?:strictly |monotonically )?(?:increasing|decreasing)", r"monoton(?:ic|e)", r"periodic", r"bounded", r"linear",
    r"concave", r"positive", r"odd", r"even", r"non-?negative", r"density", r"one-to-one", r"invertible", r"symmetric",
)  # fmt: skip
WIDTH = {"number": 2.0, "whole": 7.0}
SIGNED = {  # bounds of numbers whose sign alone is said
    ("array", "negative"): (-3.0, -0.2), ("number", "negative"): (-3.0, -0.5), ("whole", "negative"): (-9.0, -1.0),
    ("wholes", "negative"): (-9.0, -1.0), ("wholes", "positive"): (1.0, 9.0),
}  # fmt: skip
TEXTS = re.compile(
    r"\b(?:list|sequence|tuple|iterable)(?:\[str\b|s? of (?:words|strings|texts|str|names|letters|characters)\b)",
    re.IGNORECASE,
)
SAME = re.compile(r"\bsame (?:length|shape|size)s? as `*([A-Za-z_]\w*)", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """What is said of numbers.

    axes     of an array; both the same of a square matrix
    range    the least and the greatest of them; None where nothing is said
    likely   what an array's numbers are like, or "positive"; "" where nothing is said
    also     words that `Drawn` and `Whole` know
    below    the axis whose places an array counts
    """

    axes: tuple[str, ...] = ()
    range: tuple[float, float] | None = None
    likely: str = ""
    also: str = ""
    below: str = ""


def numbers(name: str, text: str, kind: str, axes: tuple[str, ...]) -> Said:
    """What an argument's paragraph says of its numbers; `kind` is what the argument is."""
    text = re.sub(rf"^\W*(?:param\s+|type\s+)?(?:\w+\s+)??{re.escape(name)}\b", "", text, count=1)
    likely, bounds, signed = docstrings.likely(text.lower()), docstrings.bounds(text), sign(text)
    if kind == "array" and likely != "whole" and said(SUM, text):
        likely = "probabilities"
    if likely in ("", "positive"):
        likely = "positive" if signed in ("positive", "not negative") else ""
    if bounds is None and kind in WIDTH:
        bounds = one_sided(text, kind)
        bounds = docstrings.within(bounds) if kind == "number" else bounds
    elif kind != "array":
        bounds = docstrings.within(bounds)
    bounds = bounds or SIGNED.get(("wholes" if likely == "whole" else kind, signed))
    below = docstrings.below(text) if kind == "array" else ""
    if kind == "array" and likely == "whole" and re.search(r"\bpermutation\b", text):
        below = below or "".join(axes[-1:])
    if kind == "array" and axes == ("row", "column") and "[" not in text and re.search(r"\bsquare\b", text):
        axes = ("n", "n")
    return Said(axes, bounds, likely, also(text, kind, of_wholes=kind == "whole" or likely == "whole"), below)


def also(text: str, kind: str, *, of_wholes: bool) -> str:
    """What the numbers are to be besides: words that `Drawn` and `Whole` know, with blanks between."""
    known = [name for name in ALSO if kind == "array" or (kind == "whole" and name in ("even", "odd"))]
    found = [name for name in known if said(ALSO[name], text)]
    if "decreasing" in found or "increasing" in found:
        found = [name for name in found if name != "sorted"]
    return " ".join(name for name in found if of_wholes or name not in ("even", "odd"))


def said(pattern: re.Pattern[str], text: str) -> bool:
    """Whether it stands in the text, and not as what need not be: `not sorted`, `may be negative`."""
    return any(not HEDGED.search(text[: found.start()]) for found in pattern.finditer(text))


def sign(text: str) -> str:
    """ "positive", "negative" or "not negative" numbers, where the text says so; "" elsewhere."""
    patterns = {"positive": POSITIVE, "not negative": NOT_NEGATIVE, "negative": NEGATIVE}
    return next((name for name, pattern in patterns.items() if said(pattern, text)), "")


def one_sided(text: str, kind: str) -> tuple[float, float] | None:
    """Bounds of a number of which one is said, or both in a chain: `at least 3`, `0 < x < 1`; None where none is."""
    if found := CHAIN.search(text):
        shift = 1 if kind == "whole" else 0
        return float(found[1]) + shift * (found[2] == "<"), float(found[4]) - shift * (found[3] == "<")
    step, width = (1, WIDTH["whole"]) if kind == "whole" else (0, WIDTH["number"])
    low: float | None
    high: float | None
    least, above = LEAST.search(text), ABOVE.search(text)
    most, below = MOST.search(text), BELOW.search(text)
    low = float(least[2]) if least else float(above[2]) + step if above else None
    high = float(most[1]) if most else float(below[1]) - step if below else None
    if low is not None and high is not None:
        return (low, high) if low <= high else None
    if low is not None:
        return (low, low + width) if low != 0 or kind == "whole" else None
    return (
        None if high is None or high == 0 else (min(float(step), high - width) if high > step else high - width, high)
    )


def unread(name: str, kind: str, axes: tuple[str, ...], text: str, takes: Sequence[str] = ()) -> Iterator[str]:
    """Words of an argument's paragraph that sound as if they bound what is drawn, and do not."""
    if kind == "function" and (example := callbacks.SUCH_AS.search(text)) and not callbacks.given(takes, text):
        yield example[0].strip(" .")
    patterns = OF_FUNCTIONS if kind == "function" else UNREAD if kind in ("array", "number", "whole", "text") else ()
    words = [rf"\b{one}\b" for one in patterns]
    if kind in ("number", "text"):
        words += [ALSO[one].pattern for one in ("even", "odd") if kind == "number"]
    for pattern in words:
        for found in re.finditer(pattern, text, re.IGNORECASE):
            is_drawn = found[0].lower().startswith("same ") or (
                found[0].lower() == "square" and len(set(axes)) < len(axes)
            )
            if not HEDGED.search(text[: found.start()]) and found[0] != name and not (axes and is_drawn):
                yield found[0]
                break


def first_line(node: ast.FunctionDef) -> int:
    """The line of a file at which the text of a function's docstring begins."""
    first = node.body[0]
    raw = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else ""
    return first.lineno + (raw[: len(raw) - len(raw.lstrip())].count("\n") if isinstance(raw, str) else 0)


def line_of(docstring: str, name: str, word: str) -> int:
    """How many lines of a docstring stand before that which holds the word, where it says what the argument is."""
    lines = docstring.splitlines()
    row = re.compile(rf"\W*(?:param\s+)?(?:\w+\s+)??{re.escape(name)}\b")
    starts = [place for place, text in enumerate(lines) if row.match(text)]
    inside = itertools.chain.from_iterable(range(start, len(lines)) for start in starts)
    return next((place for place in inside if word in lines[place]), starts[0] if starts else 0)

"""What a handout says in the kit's own words: the table of points, how to install, the public checks as tests."""

from __future__ import annotations

import re

from autograder.grading.items import Assignment
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.text import number

POINTS_BEGIN, POINTS_END = "<!-- points:begin -->", "<!-- points:end -->"
HIDDEN = re.compile(r"^[ \t]*hidden[ \t]*=[ \t]*\[[^\]]*\][^\n]*\n?", re.MULTILINE)  # no case's name holds a bracket
TORCH = """\
pip install torch --index-url https://download.pytorch.org/whl/cpu    # the small build; without it pip may take 5.5 GB
"""
TEXT = """\
## Install, and keep up to date

Python 3.11 or newer, in this folder:

```sh
python -m venv .venv && . .venv/bin/activate      # in Windows' PowerShell: .venv\\Scripts\\Activate.ps1
{torch}pip install -r requirements.txt
python -m autograder check --watch                # checks again whenever you save, until Ctrl-C
```

Your course may give out a newer `{name}.zip` after you have begun. Do not unpack it over your work. Put it into
this folder, unpack it there beside your work, and let it renew this one:

```sh
unzip {name}.zip -d newer
cd newer/{name} && python -m autograder update ../..
```

Checker, cases and texts are the new ones then, and `newer` may go. What you have changed is kept, your module and
notebook before all, and is named.

"""

TEST_FILE = '''\
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
        pytest.fail("\\n".join(item_lines(result)), pytrace=False)
'''


def with_points(text: str, assignment: Assignment) -> str:
    """The assignment text with the table of items between its two comments."""
    before, begin, rest = text.partition(POINTS_BEGIN)
    _, end, after = rest.partition(POINTS_END)
    if not begin or not end:
        raise ReleaseError(f"The solution's README.md lacks {POINTS_BEGIN} and {POINTS_END} for its table of points.")
    return f"{before}{begin}\n{points_table(assignment)}{end}{after}"


def points_table(assignment: Assignment) -> str:
    """The items as a Markdown table, by function, with sums."""
    lines = ["| item | what is checked | points |", "|---|---|---:|"]
    for function in assignment.functions:
        items = [item for item in assignment.items if item.function == function]
        lines.append(f"| **`{function}`** | | **{number(sum(item.points for item in items))}** |")
        lines += [f"| `{item.id}` | {item.title} | {number(item.points)} |" for item in items]
    lines.append(f"| **all** | | **{number(assignment.max_points)}** |")
    return "\n".join(lines) + "\n"


def with_installation(readme: str, assignment: Assignment) -> str:
    """The assignment's text with this before its first section."""
    title, heading, rest = readme.partition("## ")
    return title + TEXT.format(name=assignment.name, torch=TORCH if assignment.needs_torch else "") + heading + rest


def without_hidden(items: str) -> str:
    """`items.toml` as students get it: without its entries `hidden = […]`, on one line or several.

    Another layout, which this cannot mask, is a fault that authors are told of.
    """
    return HIDDEN.sub("", items)

"""What the README of every handout says of installing, of checking at each save, and of a newer handout."""

from __future__ import annotations

from autograder.grading.items import Assignment

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


def with_installation(readme: str, assignment: Assignment) -> str:
    """The assignment's text with this before its first section."""
    title, heading, rest = readme.partition("## ")
    return title + TEXT.format(name=assignment.name, torch=TORCH if assignment.needs_torch else "") + heading + rest

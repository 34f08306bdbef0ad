"""Options that several verbs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AssignmentOption = Annotated[
    str | None,
    typer.Option("--assignment", help="Which assignment; without it what the files say, all, or the only one."),
]
FixturesOption = Annotated[
    Path | None, typer.Option("--fixtures", readable=False, help="A folder with another set of fixtures.")
]

"""The first code cell of a notebook: it finds the assignment's folder, wherever the notebook was opened."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.grading.items import PACKAGES

FIRST = "first-run-this"
LOOKED_FOR = ("torch", "einops")  # of an assignment's packages, what is not there as a matter of course
SOURCE = """\
# Run this cell first. It looks for the folder of this assignment, or for its zip, and says what is missing.
import importlib.util
import os
import sys
import zipfile
from pathlib import Path

assignment = "{name}"
places = [Path(place) for place in (".", "/content", "/content/drive/MyDrive", "/kaggle/input", Path.home())]
folders = [*Path.cwd().parents, *places, *(place / assignment for place in places)]
folders += [path.parents[2] for place in places for path in place.glob(f"*/*/fixtures/{{assignment}}/items.toml")]
folder = next((path for path in [Path.cwd(), *folders] if (path / "fixtures" / assignment).is_dir()), None)
uploaded = [path for place in places if place.is_dir() for path in sorted(place.glob(f"{{assignment}}*.zip"))]
if folder is None and uploaded:
    zipfile.ZipFile(uploaded[0]).extractall()
    folder = Path.cwd() / assignment
if folder is None:
    print(f"This notebook needs the rest of the handout. Upload {{assignment}}.zip beside it (Colab: the folder sign")
    print("on the left, then the arrow), or mount the drive that holds it, and run this cell again.")
elif folder != Path.cwd() and folder not in Path.cwd().parents:
    os.chdir(folder)
    sys.path.insert(0, str(folder))
if missing := [name for name in {packages} if importlib.util.find_spec(name) is None]:
    print(f"Missing here: {{', '.join(missing)}}. In a new cell, run: %pip install {{' '.join(missing)}}")
"""


def first_cell(assignment: str, packages: Sequence[str] = PACKAGES) -> str:
    """The cell's text for this assignment, in these packages; it prints nothing where all is there."""
    looked_for = [*(name for name in LOOKED_FOR if name in packages), "safetensors"]
    shown = ", ".join(f'"{name}"' for name in looked_for)
    return SOURCE.format(name=assignment, packages=f"({shown}{',' if len(looked_for) == 1 else ''})").rstrip()

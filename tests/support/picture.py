"""The README's picture of a page, made anew: `python tests/support/picture.py`, with Chromium and playwright.

It shows a function of a student of the sample class and the item that it fails, and carries the hash of the templates
that it was made with.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from places import KIT

PICTURE = KIT / "autograder" / "pages" / "feedback.png"
STUDENT, ITEM = "emeka", "#item-deltas-normalized"
MARGIN = 8  # pixels around what is shown


def templates() -> str:
    """What a feedback page looks like by: the hash of its templates."""
    folder = KIT / "autograder" / "pages" / "templates"
    names = ("page.html", "feedback.html", "listing.html", "drawings.html", "named.html", "style.css", "feedback.css")
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def shot(page: Path) -> bytes:
    """The item's card, with the line of the code, as Chromium shows it: PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = chromium.new_page(viewport={"width": 760, "height": 1000})
        view.goto(page.as_uri())
        box = view.locator(ITEM).bounding_box()
        assert box, "the item is not on the page"
        clip = {"x": box["x"] - MARGIN, "y": box["y"] - MARGIN}
        clip |= {"width": box["width"] + 2 * MARGIN, "height": box["height"] + 2 * MARGIN}
        return view.screenshot(full_page=True, clip=clip)


def main() -> None:
    with tempfile.TemporaryDirectory() as grades:
        submission = KIT / "fixtures" / "policy_gradient" / "submissions" / STUDENT
        command = [sys.executable, "-m", "autograder", "grade", submission, "--out", grades, "--jobs", "1"]
        subprocess.run(command, cwd=KIT, check=True, stdout=subprocess.DEVNULL)
        image = Image.open(io.BytesIO(shot(Path(grades) / "feedback" / f"{STUDENT}.html")))
    made_with = PngInfo()
    made_with.add_text("templates", templates())
    image.quantize(64).save(PICTURE, pnginfo=made_with, optimize=True)


if __name__ == "__main__":
    main()

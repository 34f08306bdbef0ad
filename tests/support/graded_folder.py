"""What a run wrote into its folder, so that two runs can be compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from autograder.pages.class_page import RUN_BEGIN, RUN_END
from autograder.vocabulary.files import WRITING
from autograder.vocabulary.report import Report, read_report, to_json

OF_RUN = re.compile(f"{RUN_BEGIN}.*?{RUN_END}", re.DOTALL)


def without_times(report: Report) -> Report:
    """The report with every measured time set to 0."""
    return replace(report, items=tuple(replace(item, seconds=0.0) for item in report.items))


def page_without_times(page: str) -> str:
    """An index page without its times and its changes since the last run."""
    return OF_RUN.sub("", page)


def comparable(out: Path) -> dict[str, list[str]]:
    """The lines of everything that a run wrote, without what measures time."""
    paths = {path.relative_to(out).as_posix(): path for path in sorted(out.rglob("*")) if path.is_file()}
    whole = {name: path for name, path in paths.items() if name != "run.json" and not path.name.startswith(WRITING)}
    return {name: timeless(path).splitlines() for name, path in whole.items()}


def timeless(path: Path) -> str:
    text = path.read_bytes().decode()
    if path.name == "index.html":
        return page_without_times(text)
    if path.suffix != ".json" or path.parent.name == "details":  # which tell no time
        return text
    report = read_report(path)
    assert report is not None, path
    return json.dumps(to_json(without_times(report)), indent=1)

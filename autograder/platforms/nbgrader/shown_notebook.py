"""The notebook that formgrader and `generate_feedback` show: the source notebook, one student's answers, the results.

Nothing of a submission is executed; only answers in words and the graded definitions are taken, as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring.handout.notebook import Cell, Notebook, Words
from autograder.platforms.nbgrader.harmless import as_written, harmless
from autograder.submissions.submission import BREAK, Function
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import item_lines
from autograder.vocabulary.text import visible


@dataclass(frozen=True)
class Handed:
    """What a student handed in, as text: the module that was graded, and the answers in words."""

    source: str = ""
    words: Words = field(default_factory=Words)
    changed: bool = False
    functions: Mapping[str, Function] = field(default_factory=dict)


def written_in(path: Path, questions: Mapping[str, str]) -> dict[str, str]:
    """The answers in words that an earlier export put into the notebook at `path`."""
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells  # type: ignore[no-untyped-call]
    except (OSError, ValueError):
        return {}
    return {cell["id"]: as_written(cell["source"]) for cell in cells if cell.get("id") in questions}


def filled(template: Notebook, report: Report, handed: Handed) -> Notebook:
    """The students' notebook with one student's answers, and with the results as the outputs of the test cells."""
    results = {result.item: result for result in report.items}
    lines = BREAK.split(handed.source)
    answers = {name: "\n".join(lines[at.first - 1 : at.last]).rstrip() for name, at in handed.functions.items()}
    for cell in template["cells"]:
        name = cell["id"]
        if name in results:
            cell["outputs"] = _outputs(results[name])
        elif name in handed.words.written:
            pictures = handed.words.pictures.get(name, {})
            cell["source"] = harmless(handed.words.written[name], pictures)
            if pictures:
                cell["attachments"] = {picture: dict(bundle) for picture, bundle in pictures.items()}
        elif name in answers:
            cell["source"] = answers[name]
    if handed.source:
        head = {"cell_type": "markdown", "id": "graded-text", "metadata": {}, "source": "## All that was graded"}
        template["cells"] += [head, {**_code(handed.source), "id": "graded"}]
    return template


def _code(source: str) -> Cell:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def _outputs(result: ItemResult) -> list[dict[str, Any]]:
    """What the test cell would have shown: the points, and why they are not all."""
    text = visible("\n".join(item_lines(result, again="")), newlines=True) + "\n"
    if result.points is None:
        return [{"output_type": "stream", "name": "stderr", "text": text}]
    value = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {}}
    value["data"] = {"text/plain": repr(result.points)}
    stream = {"output_type": "stream", "name": "stdout" if result.verdict == "passed" else "stderr", "text": text}
    return [stream, value] if result.verdict == "passed" else [value, stream]

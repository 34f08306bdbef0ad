"""What the documents show: commands and what these print. The tests run them and compare.

`python tests/support/shown.py [DOCUMENT …]` runs them all, or those of the named documents, and writes what they print
into them: `python tests/support/shown.py handout/README.md`.

A `console` block holds commands after `$ ` and their output, of which a line `…` stands for what is left out. Sections
begin in the root of a copy of the kit that all sections of a document share, but for those that take minutes, which
have one of their own. Installing is left out; measured times, sizes and paths are not compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

KIT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
INSTALL = re.compile(r"(python -m )?pip install [^;&]*(; |&& |$)")
LEFT_OUT = "…"
LONG = frozenset({"A new term", "Before a release"})  # headings of what takes minutes
NOT_COPIED = (".git", "__pycache__", "*.egg-info", ".*_cache", ".venv", "grades", "build", ".hypothesis", "runs")
COPIES = ("autograder", "fixtures")  # in each handout; `release` makes them
MEASURED = (
    (re.compile(r"\d+\.\d+ ?s\b"), "N s"),
    (re.compile(r"[\d,]+ bytes"), "N bytes"),
    (re.compile(r"\d+ files\. No line"), "N files. No line"),
    (re.compile(r"Linux \S+, Python [\d.]+, \d+ cores"), "MACHINE"),
    (re.compile(r"manifest [0-9a-f]{12}"), "manifest HASH"),
    (re.compile(r"\b\d+\.\d+\.\d+(\+\w+)?"), "VERSION"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A command and what a document says that it prints."""

    command: str
    output: str


@dataclass(frozen=True)
class Section:
    """The steps under one heading of a document, in their order."""

    document: str
    heading: str
    steps: tuple[Step, ...]


def documents() -> list[str]:
    """Paths from the root, with `/`: README.md, then whatever stands beside the folders' own."""
    return ["README.md", *(path.relative_to(KIT).as_posix() for path in sorted(KIT.glob("[a-z]*/*.md")))]


def text_of(document: str) -> str:
    return (KIT / document).read_text(encoding="utf-8")


def sections(document: str) -> list[Section]:
    """The sections that show commands; what stands above the first heading has the document's name."""
    parts = [document, *re.split(r"^## (.+)$", text_of(document), flags=re.MULTILINE)]
    found = [
        Section(document, heading, tuple(steps(text))) for heading, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    return [section for section in found if section.steps]


def runs() -> list[list[Section]]:
    """Sections that are run one after another in one copy of the kit: those of a document, each long one alone."""
    listed = []
    for document in documents():
        found = sections(document)
        short = [section for section in found if section.heading not in LONG]
        listed += [[section] for section in found if section.heading in LONG] + ([short] if short else [])
    return listed


def steps(text: str) -> Iterator[Step]:
    for block in BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            yield Step(command, output)


@dataclass
class Shell:
    """Runs commands in a copy of the kit, and remembers where it is."""

    root: Path
    folder: Path

    def run(self, command: str) -> str:
        runnable = INSTALL.sub("", command)
        if not runnable:
            return ""
        done = subprocess.run(
            ["bash", "-c", f"{runnable}; status=$?; pwd > {self.root}/.folder; exit $status"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.root), "COLUMNS": "110", "NO_COLOR": "1"}
            | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.folder = Path((self.root / ".folder").read_text().strip())
        shown = done.stdout.replace(str(self.root), "…")
        return "".join(line.rstrip() + "\n" for line in shown.splitlines())


def copy_of_the_kit(folder: Path) -> Shell:
    """The kit as a clone has it: without what was made in this folder."""
    root = folder / "kit"
    shutil.copytree(KIT, root, ignore=_made)
    return Shell(root, root)


def _made(folder: str, names: list[str]) -> set[str]:
    made = shutil.ignore_patterns(*NOT_COPIED)(folder, names)
    return made | (set(COPIES) & set(names) if Path(folder).parent == KIT / "handout" else set())


def comparable(text: str) -> list[str]:
    for pattern, instead in MEASURED:
        text = pattern.sub(instead, text)
    return [line.strip() for line in text.splitlines() if not line.startswith("NOT STRICT")]


def as_shown(printed: list[str], shown: list[str]) -> list[str]:
    """What was printed without the lines that the document leaves out: as many stand at both ends as it shows."""
    if LEFT_OUT not in shown:
        return printed
    at = shown.index(LEFT_OUT)
    after = len(shown) - at - 1
    if len(printed) <= at + after:
        return printed
    return [*printed[:at], LEFT_OUT, *printed[len(printed) - after :]]


def renewed(text: str, step: Step, printed: str, start: int) -> tuple[str, int]:
    """The document's text with what the step printed now, and where this stands; it is sought from `start` on."""
    lines = as_shown(printed.splitlines(), step.output.splitlines())
    old, new = f"$ {step.command}\n{step.output}", f"$ {step.command}\n" + "".join(f"{line}\n" for line in lines)
    at = text.index(old, start)
    return text[:at] + new + text[at + len(old) :], at + len(new)


def renew(chosen: Iterable[str]) -> None:
    """Write what the commands print now into the chosen documents."""
    for run in runs():
        if run[0].document not in chosen:
            continue
        text = text_of(run[0].document)
        with tempfile.TemporaryDirectory() as folder:
            shell = copy_of_the_kit(Path(folder))
            for section in run:
                at, shell.folder = max(text.find(f"## {section.heading}\n"), 0), shell.root
                for step in section.steps:
                    print(f"{section.document}, {section.heading}: {step.command}", flush=True)
                    text, at = renewed(text, step, shell.run(step.command), at)
        (KIT / run[0].document).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew(sys.argv[1:] or documents())

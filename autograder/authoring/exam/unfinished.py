"""What an assignment lacks still: a handout of the solution as it is now, hints of its own, hidden cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from autograder.authoring.exam.contract import README, docstrings, read_contract, unquoted
from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.handout.release import handout_files
from autograder.authoring.proofreading.fault import likely
from autograder.checking.handout import COPIES
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import RECORD
from autograder.vocabulary.folders import is_ignored

TODO = re.compile(r"# TODO: (.*)")


def stale_handout(assignment: Assignment) -> list[str]:
    """A complaint where the handout is not what `release` would make now; the copies in it need not be there at all."""
    try:
        files = handout_files(assignment)
    except ReleaseError as error:
        return [str(error)]
    absent = tuple(f"{name}/" for name in COPIES if not (assignment.handout / name).exists())
    files = {name: data for name, data in files.items() if not name.startswith(absent) and not name.endswith(RECORD)}
    stale = [name for name, data in files.items() if _bytes(assignment.handout / name) != data]
    found = [path for name in COPIES for path in (assignment.handout / name).rglob("*") if path.is_file()]
    names = [path.relative_to(assignment.handout) for path in found if path.name != RECORD]
    strange = sorted(
        name.as_posix() for name in names if name.as_posix() not in files and not any(map(is_ignored, name.parts))
    )
    complaints = [f"The handout is not what release makes ({_some(stale)}): run `autograder release`."] if stale else []
    more = [f"The handout holds what release did not put there ({_some(strange)}): take it away."] if strange else []
    return [*complaints, *more]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def missing(assignment: Assignment, known: Iterable[str]) -> list[str]:
    """What an addition to the assignment may still lack: nothing that grades wrongly, but what a course would miss.

    known   the functions that a mistake is known of
    """
    text = readme_of(assignment)
    explained = set(known)
    functions = assignment.functions
    listing = [item for item in assignment.items if not item.laws]
    return [
        *_another_title(assignment, text),
        *(
            f"No mistake is known of {name}: nobody who gets it wrong is told why."
            for name in functions
            if name not in explained
        ),
        *(f"The assignment's text does not name {name}." for name in functions if name not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in listing if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in listing if not item.hidden),
        *todos(assignment.folder),
    ]


def todos(folder: Path) -> list[str]:
    """List what `# TODO: …` leaves to the author, with file and line."""
    files = [*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml"))]
    return [
        f"{path.parent.name}/{path.name}:{number}: {found[1].strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := TODO.search(line))
    ]


def contract_slips(assignment: Assignment, slugs: Collection[str]) -> list[str]:
    """What the contract quotes and stands nowhere, and the other way round; mistakes of it that are not `slugs`."""
    contract = read_contract(assignment)
    if contract is None:
        return []
    quotes = unquoted(contract, docstrings(solution_source(assignment), assignment.functions), readme_of(assignment))
    named = [(clause, name) for clause in contract.clauses for name in clause.mistakes if ":" not in name]
    unknown = [(clause, name) for clause, name in named if name not in slugs]
    return [*quotes, *(f"{contract.place(clause)} names {name!r}; {likely(name, slugs)}." for clause, name in unknown)]


def readme_of(assignment: Assignment) -> str:
    """The assignment's text; "" where there is none."""
    path = assignment.solution / README
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _another_title(assignment: Assignment, text: str) -> list[str]:
    """That the text is headed by another title than items.toml says; either may be the longer one."""
    heading = next((line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")
    if not heading or heading.startswith(assignment.title) or assignment.title.startswith(heading):
        return []
    return [f"The assignment's text is headed {heading!r}, and items.toml says {assignment.title!r}."]

"""The verb `doctor`: what this machine has of what grading needs, and what to do where something is missing."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from rich.table import Table
from rich.text import Text

from autograder.authoring.exam.selfcheck import stale_handout
from autograder.authoring.fixtures.regenerate import observe
from autograder.authoring.handout.release import installed_requirements
from autograder.cli import options
from autograder.cli.terminal import empty_table, standard_output
from autograder.grading.assignment import Assignment, find_assignments, unreadable
from autograder.grading.fixtures import Case, read_fixtures
from autograder.sandbox.isolation.layers import AROUND
from autograder.sandbox.sandbox import Sandbox, probe
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.text import visible

State = Literal["ok", "absent", "warning", "missing"]
STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "missing": "bold red"}
OR_ELSE = "grade in a container, or as a user who owns nothing else"
WITHOUT = {  # of each layer of isolation, what to do without it
    "rlimits": f"Student code may use up memory and disk: {OR_ELSE}.",
    "landlock": f"Linux 5.13 or newer has it, if it is not switched off (lsm=). Until then, {OR_ELSE}.",
    "identity": "Student code keeps the rights of root: grade as an ordinary user.",
    "namespaces": "One more wall; strict does not need it. Root needs CAP_SYS_ADMIN, a user needs user namespaces "
    "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns).",
    "seccomp": f"Student code may start processes and use the network: {OR_ELSE}.",
}


def doctor(assignment: options.Assignment = None) -> None:
    """Which packages, isolation layers and fixtures this machine has, and what to do about what is missing."""
    here = options.course()
    examined = examine(here, find_assignments(here, assignment), unreadable(here))
    standard_output().print(doctor_table(examined))
    if any(each.state == "missing" for each in examined):
        raise SystemExit(3)


@dataclass(frozen=True)
class Examined:
    """One thing looked at; `advice` says what to do where it is not in order.

    state   absent: it is not here, and nothing needs it
    """

    what: str
    state: State
    found: str
    advice: str = ""


def examine(course: Path, assignments: Sequence[Assignment], broken: Mapping[str, str]) -> list[Examined]:
    """Examine everything that grading needs, in the order in which it needs it.

    broken   assignments of the course that cannot be read: folder → what is wrong
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {cores} cores"
    packages = [package(entry) for entry in installed_requirements() if ";" not in entry]  # the others are of extras
    examined = [*packages, Examined("machine", "ok", machine), *_sandbox(assignments[0])]
    for assignment in assignments:
        try:
            stored = read_fixtures(assignment)
            size = f"{len(stored.cases)} cases in {len(assignment.items)} items"
            examined.append(Examined("fixtures", "ok", f"{assignment.name}: {size}, manifest {stored.sha256[:12]}"))
        except KitError as error:
            examined.append(Examined("fixtures", "missing", str(error)))
        try:
            complaints = stale_handout(assignment)
        except KitError as error:
            complaints = [str(error)]
        path = assignment.handout
        shown = path.relative_to(course).as_posix() if path.is_relative_to(course) else str(path)
        examined.append(Examined("handout", *(("warning", complaints[0]) if complaints else ("ok", shown))))
    return examined + [
        Examined(name, "missing", why, "Grade others with --assignment.") for name, why in broken.items()
    ]


def package(requirement: str) -> Examined:
    """Tell whether a requirement of the forms `name`, `name>=1.2` or `name==1.2` is met here."""
    name, relation, wanted = re.split("(==|>=|$)", requirement, maxsplit=1)
    advice = f"python -m pip install '{requirement}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Examined(name, "missing", "not installed", advice)
    here, needed = ([int(part) for part in re.findall(r"\d+", text.split("+")[0])] for text in (found, wanted))
    if relation == "==" and here != needed:
        return Examined(name, "warning", found, f"Stored tensors were made with {wanted}: {advice}")
    if relation == ">=" and here < needed:
        return Examined(name, "warning", found, f"The kit was written for {wanted} or newer: {advice}")
    return Examined(name, "ok", found)


def _sandbox(assignment: Assignment) -> list[Examined]:
    item = assignment.items[0]
    case = Case("doctor", item.id, item.function, "", "public", "", {}, {}, (), {})
    try:
        with Sandbox() as sandbox:
            outcome: str = observe(assignment, "", [case], sandbox)[0].status
    except KitError as error:
        outcome = str(error)
    if outcome != "missing":  # what an empty module should be told: the answer comes from inside the sandbox
        advice = "Reinstall the kit as README.md says; student code cannot run here."
        return [Examined("sandbox", "missing", outcome, advice)]
    examined = [Examined("sandbox", "ok", "starts, and answers")]
    for layer, why_not in probe().items():
        state: State = "ok" if not why_not else "absent" if layer in AROUND else "warning"
        examined.append(Examined(layer, state, why_not or "tried: it holds", WITHOUT[layer] if why_not else ""))
    return examined


def doctor_table(examined: Iterable[Examined]) -> Table:
    """Show what the machine has, and what to do where something is missing."""
    table = empty_table("What grading needs here")
    table.add_column("", no_wrap=True)
    for heading in ("state", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for each in examined:
        state = Text(each.state, STYLES[each.state])
        table.add_row(Text(each.what), state, Text(visible(each.found)), Text(visible(each.advice)))
    return table

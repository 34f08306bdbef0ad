"""The first table: every contender, one and two at a time, in rounds, on the same submissions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.contenders import Contender, Workshop
from benchmarks.measure import CommandFailed


def compare_all(
    workshop: Workshop,
    found: Sequence[Contender],
    count: int,
    rounds: int,
    at_a_time: Sequence[int],
    say: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """A row for each contender and number at a time; what cannot run here has a row that says why.

    whole     seconds of the whole run over its number of submissions, start of the tool included
    further   seconds of each further submission of a long class: the start, timed as a run with one submission at a
              time, left out; where each submission is a command of its own, the same as `whole`
    """
    ready = [contender for contender in found if not contender.missing(workshop)]
    for contender in ready:
        say(f"preparing {contender.name}")
        contender.prepare(workshop)
    rows: dict[tuple[str, int], dict[str, Any]] = {
        (contender.name, parallel): {"name": contender.name, "at_a_time": parallel, "missing": ""}
        for contender in ready
        for parallel in at_a_time
    }
    for turn in range(rounds):
        for contender in ready:
            for parallel in at_a_time:
                say(f"round {turn + 1} of {rounds}: {contender.name}, {parallel} at a time")
                _time(contender, workshop, count, parallel, rows[contender.name, parallel])
    absent = [
        {"name": contender.name, "at_a_time": None, "missing": contender.missing(workshop)}
        for contender in found
        if contender not in ready
    ]
    return [*map(_summed_up, rows.values()), *absent]


def _time(contender: Contender, workshop: Workshop, count: int, parallel: int, row: dict[str, Any]) -> None:
    """Add one run to a row; a tool that fails says so there, and ends nothing but its own row."""
    if row.get("failed"):
        return
    try:
        start = 0.0 if contender.fresh_process else contender.grade(workshop, parallel, parallel).seconds
        measured = contender.grade(workshop, count, parallel)
    except CommandFailed as error:
        row["failed"] = str(error)
        return
    first = 0 if contender.fresh_process else parallel
    row.setdefault("wholes", []).append(measured.seconds / count)
    row.setdefault("furthers", []).append((measured.seconds - start) / (count - first))
    row.setdefault("peaks", []).append(measured.peak_tree)


def _summed_up(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("failed"):
        return {"name": row["name"], "at_a_time": row["at_a_time"], "missing": f"failed: {row['failed']}"}
    medians = {
        "whole": statistics.median(row["wholes"]),
        "further": statistics.median(row["furthers"]),
        "peak_mib": max(row["peaks"]),
    }
    return {**row, **medians}


def ratios(rows: Sequence[dict[str, Any]], against: str) -> list[dict[str, Any]]:
    """The rows with how many times as long they take as the contender `against` at the same number at a time."""
    base = {row["at_a_time"]: row for row in rows if row["name"] == against and not row["missing"]}
    found = []
    for row in rows:
        other = base.get(row["at_a_time"])
        times = (
            {}
            if row["missing"] or other is None
            else {f"times_{what}": row[what] / other[what] for what in ("whole", "further")}
        )
        found.append({**row, **times})
    return found

"""The result → text: its tables, and where it stands against what is aimed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

STRICT = "this kit, strict"
TARGETS = {"nbgrader": 30.0, "pytest": 20.0}
FURTHER, AT_TWO, ONE_OVER_TWO = 0.07, 2, 2.0  # seconds of a further submission at two at a time; one at a time over it
CHECK, IMPORT, WATCH = "autograder check, all items", "python -c 'import torch'", "check --watch, after a save"
CHECK_OVER_IMPORT, AFTER_SAVE = 1.2, 0.3
ISOLATION_MS, OVER_FLOOR, FLOOR = 10.0, 1.35, 0.12
LINEAR, FLAT = 1.25, 1.25  # from the second-largest class to the largest: what still counts as linear, as flat


def text(result: Mapping[str, Any]) -> str:
    """All of it, as it is printed."""
    parts = [where(result["machine"]), *(part(name, result[name]) for name in PARTS if name in result), aims(result)]
    return "\n\n".join(filter(None, parts)) + "\n"


def part(name: str, found: Mapping[str, Any]) -> str:
    """One table, by the name that --only gives it."""
    return PARTS[name](found)


def aims(result: Mapping[str, Any]) -> str:
    """Where that stands against what is aimed at; "" where nothing of it was measured."""
    found = targets(result)
    return _targets(found) if found else ""


def where(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['started']}: {machine['cores']} cores, {machine['processor']}, {machine['platform']}, "
        f"load {machine['load']:.1f} before\n{versions}\nisolation at strict: {', '.join(machine['layers'])}"
    )


def _comparison(found: Mapping[str, Any]) -> str:
    lines = [
        f"{found['submissions']} copies of one right submission ({found['submission']}, {found['items']} items, "
        f"{found['cases']} cases), median of {found['rounds']} rounds",
        "",
        _row("", "at a time", "s each", "ratio", "s further", "ratio", "peak MiB"),
        _rule(),
    ]
    for row in found["rows"]:
        if row["missing"]:
            at_a_time = str(row["at_a_time"] or "")
            lines.append(f"{row['name']:<32}{at_a_time:>9}   {row['missing'].splitlines()[0]}")
            continue
        cells = [str(row["at_a_time"]), f"{row['whole']:.3f}", _times(row.get("times_whole"))]
        cells += [f"{row['further']:.3f}", _times(row.get("times_further")), f"{row['peak_mib']:,.0f}"]
        lines.append(_row(row["name"], *cells))
    notes = (
        "s each: the whole run over its submissions, start included. s further: each further submission of a long",
        "class, the start left out. ratio: how many times as long as this kit at strict. Peak memory sums what the",
        "processes hold; pages that a forked worker shares with its server count twice. This kit runs each",
        "submission's learning curve as well, which the others do not.",
    )
    return "\n".join([*lines, "", *notes])


def _isolation(found: Mapping[str, Any]) -> str:
    lines = [
        f"Isolation alone: a worker started, asked once, and ended; median of {found['times']}, interleaved",
        "",
        f"{'':<32}{'ms':>9}{'added':>10}",
        _rule(51),
    ]
    for name, row in found["rows"].items():
        added = "" if name == "fork alone" else f"{row['added']:+.1f}"
        lines.append(f"{name:<32}{row['milliseconds']:>9.1f}{added:>10}")
    return "\n".join(lines)


def _floor(found: Mapping[str, Any]) -> str:
    names = {"floor": "floor: calls alone, warm process", "none": "graded, process", "strict": "graded, strict"}
    lines = [
        f"A right submission over its floor; median of {found['times']}, interleaved",
        "",
        f"{'':<32}{'s':>9}{'in items':>10}{'x floor':>10}",
        _rule(61),
    ]
    for name, row in found["rows"].items():
        lines.append(f"{names[name]:<32}{row['seconds']:>9.3f}{row['calls']:>10.3f}{row['over_floor']:>10.2f}")
    return "\n".join(
        [*lines, "", f"Of the floor, {found['curves']:.3f} s draw the learning curve, which is not judged."]
    )


def _sizes(found: Mapping[str, Any]) -> str:
    return "\n".join([sizes_head(found["isolation"], found["jobs"]), *map(sizes_row, found["rows"])])


def sizes_head(isolation: str, jobs: int) -> str:
    """What stands above the rows of the classes, each of which is printed as soon as it is graded."""
    lines = [
        f"A class as it grows, at {isolation}, {jobs} at a time",
        "4 in 10 right, 5 with known mistakes, 1 unfinished; of the first thousand, one in a hundred hangs",
        "",
        f"{'submissions':>12}{'seconds':>12}{'s each':>12}{'s further':>12}{'grader MiB':>12}{'all MiB':>12}",
        _rule(72),
    ]
    return "\n".join(lines)


def sizes_row(row: Mapping[str, Any]) -> str:
    """What one class took."""
    further = f"{row['each_further']:.4f}" if "each_further" in row else ""
    memory = f"{row['grader_mib']:>12,.0f}{row['tree_mib']:>12,.0f}"
    return f"{row['size']:>12,}{row['seconds']:>12.1f}{row['per_submission']:>12.4f}{further:>12}{memory}"


def _student(found: Mapping[str, Any]) -> str:
    lines = [f"What a student waits for; median of {found['times']}, interleaved", "", f"{'':<32}{'s':>9}", _rule(41)]
    return "\n".join([*lines, *(f"{name:<32}{seconds:>9.2f}" for name, seconds in found["rows"].items())])


def _counterexamples(found: Mapping[str, Any]) -> str:
    lines = [
        f"Wrong answers that hidden cases alone see, with counterexamples and without; median of {found['times']}, "
        "interleaved",
        "",
        f"{'':<32}{'answers':>9}{'s without':>11}{'s more':>9}{'at most':>9}{'ratio':>8}{'found':>8}",
        _rule(86),
    ]
    for name, row in found["rows"].items():
        cells = f"{row['seconds']:>11.2f}{row['added']:>9.2f}{row['most added']:>9.2f}{row['ratio']:>8.2f}"
        lines.append(f"{name:<32}{row['answers']:>9}{cells}{row['found']:>8}")
    return "\n".join(lines)


PARTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "comparison": _comparison,
    "isolation": _isolation,
    "floor": _floor,
    "sizes": _sizes,
    "student": _student,
    "counterexamples": _counterexamples,
}


def targets(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is aimed at, what was found, and whether it holds; only what this run measured."""
    return [*_ratio_targets(result), *_overhead_targets(result), *_size_targets(result), *_student_targets(result)]


def _ratio_targets(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = [row for row in result.get("comparison", {}).get("rows", []) if not row["missing"]]
    strict = [row["further"] for row in rows if row["name"] == STRICT]
    found = []
    for tool, aim in TARGETS.items():
        theirs = [row["further"] for row in rows if row["name"].startswith(tool)]
        if strict and theirs:
            ratio = min(theirs) / min(strict)
            found.append(_target(f"times the throughput of {tool}, the best of each", aim, ratio, ratio >= aim))
    further = {row["at_a_time"]: row["further"] for row in rows if row["name"] == STRICT}
    if AT_TWO in further:
        found.append(_at_most(f"s of a further submission, {AT_TWO} at a time", FURTHER, further[AT_TWO]))
    if {1, AT_TWO} <= further.keys():
        ratio = further[1] / further[AT_TWO]
        found.append(_at_most(f"times that, one at a time where it is {AT_TWO}", ONE_OVER_TWO, ratio))
    return found


def _overhead_targets(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    if "isolation" in result:
        added = result["isolation"]["rows"]["fork + all of them"]["added"]
        found.append(_at_most("ms of isolation over fork alone", ISOLATION_MS, added))
    rows = result.get("floor", {}).get("rows", {})
    if "floor" in rows:
        found.append(_at_most("s: the floor", FLOOR, rows["floor"]["seconds"]))
    if "strict" in rows:
        found.append(_at_most("times the floor", OVER_FLOOR, rows["strict"]["over_floor"]))
    return found


def _size_targets(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = result.get("sizes", {}).get("rows", [])
    if len(rows) < 3:  # two further costs are needed to tell a line from a curve
        return []
    before, last = rows[-2:]
    growth, memory = last["each_further"] / before["each_further"], last["grader_mib"] / before["grader_mib"]
    size = f"{before['size']:,} to {last['size']:,}"
    return [
        _at_most(f"times the cost of a further submission, {size}", LINEAR, growth),
        _at_most(f"times the grader's memory, {size}", FLAT, memory),
    ]


def _student_targets(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = result.get("student", {}).get("rows", {})
    found = []
    if {CHECK, IMPORT} <= rows.keys():
        found.append(_at_most("times importing torch: check", CHECK_OVER_IMPORT, rows[CHECK] / rows[IMPORT]))
    if WATCH in rows:
        found.append(_at_most(f"s: {WATCH}", AFTER_SAVE, rows[WATCH]))
    return found


def _at_most(what: str, aim: float, found: float) -> dict[str, Any]:
    return _target(f"{what}, at most", aim, found, found <= aim)


def _target(what: str, aim: float, found: float, holds: bool) -> dict[str, Any]:
    return {"what": what, "aim": aim, "found": found, "holds": holds}


def _targets(found: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{'aim':>8}{'found':>9}", _rule(61)]
    for one in found:
        word = "" if one["holds"] else "   NOT REACHED"
        lines.append(f"{one['aim']:>8g}{one['found']:>9.2f}  {one['what']}{word}")
    return "\n".join(lines)


def _row(*cells: str) -> str:
    name, at_a_time, *rest = cells
    return f"{name:<32}{at_a_time:>9}" + "".join(f"{cell:>11}" for cell in rest)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def _rule(width: int = 96) -> str:
    return "─" * width

"""The result → text: its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

STRICT = "this kit, strict"


def text(result: Mapping[str, Any]) -> str:
    """All of it, as it is printed."""
    parts = [where(result["machine"]), *(part(name, result[name]) for name in PARTS if name in result)]
    return "\n\n".join(parts) + "\n"


def part(name: str, found: Mapping[str, Any]) -> str:
    """One table, by the name that --only gives it."""
    return PARTS[name](found)


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


PARTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "comparison": _comparison,
    "isolation": _isolation,
    "floor": _floor,
    "sizes": _sizes,
    "student": _student,
}


def _row(*cells: str) -> str:
    name, at_a_time, *rest = cells
    return f"{name:<32}{at_a_time:>9}" + "".join(f"{cell:>11}" for cell in rest)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def _rule(width: int = 96) -> str:
    return "─" * width

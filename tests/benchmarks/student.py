"""What a student waits for: `check` on a solved handout, and `check --watch` after a save, beside torch's own start."""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.authoring.handout.release import handout_files
from autograder.checking.handout import write_handout
from benchmarks.contenders import Workshop
from benchmarks.measure import CommandFailed, run

STEP = "import torch; w = torch.nn.Parameter(torch.ones(2)); w.sum().backward(); torch.optim.Adam([w]).step()"
CHECK = [sys.executable, "-m", "autograder", "check"]
COMMANDS = {
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
    "the same, and one step of Adam": [sys.executable, "-c", STEP],
    "autograder check, all items": CHECK,
}
WATCH = "check --watch, after a save"


def waiting_times(workshop: Workshop, times: int) -> dict[str, Any]:
    """Median seconds of each, interleaved; in a handout of its own, as a student unpacks it."""
    folder = workshop.fresh("handout") / workshop.assignment.name
    write_handout(handout_files(workshop.assignment), folder)
    module = folder / f"{workshop.assignment.module}.py"
    module.write_text(workshop.source, encoding="utf-8")
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(times):
        for name, command in COMMANDS.items():
            seconds[name].append(run(command, folder).seconds)
    seconds[WATCH] = _after_saves(folder, module, times)
    return {"times": times, "rows": {name: statistics.median(found) for name, found in seconds.items()}}


def _after_saves(folder: Path, module: Path, times: int) -> list[float]:
    """From each save to the report on it; the first report, for which torch starts, is waited for and not counted."""
    with subprocess.Popen([*CHECK, "--watch"], cwd=folder, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            _await_report(watcher)
            return [_save(watcher, module, number) for number in range(times)]
        finally:
            watcher.send_signal(signal.SIGINT)


def _save(watcher: subprocess.Popen[str], module: Path, number: int) -> float:
    began = time.perf_counter()
    with module.open("a", encoding="utf-8") as file:
        file.write(f"# save {number}\n")
    lines = _await_report(watcher)
    if not any(line.split()[-3:] == ["100", "/", "100"] for line in lines if line.strip()):
        raise CommandFailed("a right submission was not given its points by check --watch")
    return time.perf_counter() - began


def _await_report(watcher: subprocess.Popen[str]) -> Sequence[str]:
    lines: list[str] = []
    assert watcher.stdout is not None
    for line in watcher.stdout:
        lines.append(line)
        if "Checked in" in line:
            return lines
    raise CommandFailed("check --watch ended:\n" + "".join(lines))

"""A slice of the fuzzing, always the same, and in the long stage twenty seconds more, from another place each day.

`python tests/fuzz --minutes N` goes on from where it ends.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import TARGETS, a_frame, attempt
from lengths import in_short

EXPECTED = {"read", "refused"}
A_DAY = 10_000  # tries of each target: more than there is time for


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first", in_short(range(0, 400, 20)))
def test_spoilt_input_is_read_or_refused_with_a_reason(target: str, first: int) -> None:
    outcomes = {number: attempt(target, number) for number in range(first, first + 20)}
    assert {number: outcome for number, outcome in outcomes.items() if outcome not in EXPECTED} == {}


@pytest.mark.long
def test_more_spoilt_input_is_read_or_refused() -> None:
    first = int(time.time() // 86_400) * A_DAY
    command = [sys.executable, str(Path(__file__).parent), "--minutes", "0.3", "--from", str(first)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_each_target_is_both_read_and_refused() -> None:
    """Or it would spoil too little to matter, or so much that the first check stops it."""
    for target in {*TARGETS} - {"frames", "handed-in"}:  # of these nothing is refused: it is a verdict
        assert {attempt(target, number) for number in range(40)} >= EXPECTED


def test_frames_are_spoilt_in_every_part() -> None:
    source = random.Random(20)
    outcomes = [a_frame(source, Path()) for _ in range(3_000)]
    assert min(outcomes.count(kind) for kind in ("no frame", "read", "unreadable")) > 250

"""Ten minutes of the fuzzing in the long stage: each day begins elsewhere, and what is found names its number."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

A_DAY = 10_000  # tries of each target: more than there is time for


@pytest.mark.long
def test_ten_minutes_of_spoilt_input_are_read_or_refused() -> None:
    first = int(time.time() // 86_400) * A_DAY
    command = [sys.executable, str(Path(__file__).parent), "--minutes", "10", "--from", str(first)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"

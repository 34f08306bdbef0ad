"""Which layers of isolation this machine has, found out by a process of its own that tries what each forbids."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from autograder.sandbox.around import cgroup
from autograder.sandbox.inside.isolation import AROUND, LAYERS
from autograder.sandbox.interpreter import KIT_ROOT, readable_paths

TRY = """
import sys
sys.path.append(sys.argv[1])
from autograder.sandbox.inside import canary
getattr(canary, sys.argv[2])(sys.stdin.read(), sys.argv[3:])
"""


@functools.cache
def probe() -> dict[str, str]:
    """Each layer, and why it does not hold on this machine; "" where it does. Tried once, in processes of their own."""
    if sys.platform != "linux":
        return dict.fromkeys((*LAYERS, *AROUND), "only Linux has it")
    with ThreadPoolExecutor() as pool:
        inside = pool.submit(_tried, "answer", LAYERS)
        around = pool.submit(_tried, "answer_in_namespaces", AROUND[:1])
        return {**inside.result(), **around.result(), "cgroup": cgroup.probe()}


def _tried(function: str, layers: Sequence[str], attempts: int = 2) -> dict[str, str]:
    """What the canary found; where no process could try it, once more: a busy machine is not one without layers."""
    command = [sys.executable, "-S", "-s", "-P", "-B", "-c", TRY, str(KIT_ROOT), function, *readable_paths([])]
    try:
        with tempfile.NamedTemporaryFile() as secret:
            done = subprocess.run(command, input=secret.name, capture_output=True, text=True, timeout=60)
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"it could not be tried: {error}"
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        reason = f"the process that tried it ended: {last}"
    return _tried(function, layers, attempts - 1) if attempts > 1 else dict.fromkeys(layers, reason)

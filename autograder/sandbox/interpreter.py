"""The Python that servers and workers run in: how it is started, what it finds in its environment, what it may read."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.vocabulary.places import ENGINE

KIT_ROOT = ENGINE.parent
BOOT = """
import json, sys
boot = json.loads(sys.argv[1])
sys.path[:] = [boot["root"]] + [path for path in sys.path if path] + boot["packages"]
if "namespaces" in boot.get("layers", ()):
    from autograder.sandbox.inside import namespaces
    namespaces.enter(boot["readable"])
from autograder.sandbox.inside import server, worker
sys.path.remove(boot["root"])
for name, module in sys.modules.items():
    if name.partition(".")[0] == "autograder" and hasattr(module, "__path__"):
        module.__path__ = []  # no further module of the kit can be imported
sys.argv[:] = [""]
server.serve(boot["control"], boot["layers"], boot["readable"]) if "control" in boot else worker.main_on_stdio()
"""


def command(boot: dict[str, Any]) -> list[str]:
    """A Python that processes no site, no user or current folder: only the packages that the grader itself runs on."""
    boot = {**boot, "root": str(KIT_ROOT), "packages": packages()}
    return [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, json.dumps(boot)]


def packages() -> list[str]:
    """The folders of installed packages that this Python imports from."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def environment() -> dict[str, str]:
    """The environment of a worker: nothing of the grader's own."""
    usual = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/"}
    with contextlib.suppress(RuntimeError):  # there may be no home
        usual["MPLCONFIGDIR"] = str(Path.home() / ".cache" / "policy-gradient-autograder")
    return {**usual, "MPLBACKEND": "Agg", "TORCHINDUCTOR_CACHE_DIR": "/tmp"}  # never made: a name without looking


def readable_paths(packages: Sequence[str]) -> list[str]:
    """What this Python runs on: its installation, `packages`, the system's libraries."""
    standard = [path for path in sys.path if Path(path).is_relative_to(sys.base_prefix)]
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo"]
    devices = [os.devnull, "/dev/urandom"]  # a shared mapping of /dev/zero is memory that no limit counts
    whole = {"/", "/usr", "/usr/local"}  # a Python of the system: its libraries stand in the list already
    found = [sys.base_prefix, *standard, *packages, *system, *devices]
    return list(dict.fromkeys(os.path.realpath(path) for path in found if path not in whole))

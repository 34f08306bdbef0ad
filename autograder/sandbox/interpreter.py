"""The Python processes that the kit starts: their command and environment, what they may read, what is withheld."""

from __future__ import annotations

import contextlib
import json
import ntpath
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from autograder.vocabulary.errors import FixtureError, SandboxError
from autograder.vocabulary.files import ENGINE

P = ParamSpec("P")
R = TypeVar("R")

KIT_ROOT = ENGINE.parent
NOT_FOR_WORKERS = {"site-packages", "dist-packages", ENGINE.name, "test", "idlelib", "ensurepip", "turtledemo"}
WINDOWS = frozenset(
    {
        "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMFILES", "PROGRAMDATA",
        "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER", "OS",
    }
)  # fmt: skip
BOOT = """
import gc, json, sys
gc.disable()  # next to nothing that is imported becomes garbage; looking for it takes a sixth of the time
boot = json.loads(sys.argv[1])
sys.path[:] = [boot["root"]] + [path for path in sys.path if path] + boot["packages"]
sys.orig_argv[:] = [""]
if "namespaces" in boot.get("server", {}).get("layers", ()):
    from autograder.sandbox.isolation import layers
    layers.enter(boot["server"]["readable"])
from autograder.sandbox.worker import server, worker
if boot["torch"]:
    worker.know_torch()
sys.path.remove(boot["root"])
server.hide_places(boot.pop("root"))
gc.freeze()
gc.enable()
sys.argv[:] = [""]
server.serve(**boot["server"]) if "server" in boot else worker.main_on_stdio()
"""


def command(boot: dict[str, Any], *, torch: bool = True) -> list[str]:
    """Return the command of a Python without site, user or current folder: it has the grader's own packages alone.

    torch   whether it imports torch at once
    """
    boot = {**boot, "torch": torch, "root": str(KIT_ROOT), "packages": packages()}
    return [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, json.dumps(boot)]


def packages() -> list[str]:
    """List the folders of installed packages that this Python imports from."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


# torch, MKL and oneDNN choose kernels by processor, and each rounds otherwise: these are what any with AVX2 runs alike
SAME_KERNELS = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def environment() -> dict[str, str]:
    """Return the environment of a worker: nothing of the grader's own but what the system itself needs."""
    chosen = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
    with contextlib.suppress(OSError):  # not Linux
        if " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"):
            chosen |= SAME_KERNELS
    with contextlib.suppress(RuntimeError):  # there may be no home
        chosen["MPLCONFIGDIR"] = str(Path.home() / ".cache" / "policy-gradient-autograder")
    if sys.platform == "win32":  # sockets, so `asyncio`, need SystemRoot; files that last a moment need TEMP
        kept = {name.upper(): value for name, value in os.environ.items() if name.upper() in WINDOWS}
        root, temporary = kept.setdefault("SYSTEMROOT", r"C:\Windows"), tempfile.gettempdir()
        places = dict.fromkeys(("TEMP", "TMP", "TORCHINDUCTOR_CACHE_DIR", "USERPROFILE"), temporary)
        path = os.pathsep.join([ntpath.join(root, "System32"), root])
        return chosen | kept | places | {"PATH": path, "USERNAME": "student"}
    # What malloc holds in huge pages is forked, and let go of, in half the time; other C libraries do not look
    chosen["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    # The compiler makes sure of the last folder on its import: one that is there wherever a worker is
    return chosen | {"PATH": os.defpath, "HOME": "/", "LC_ALL": "C.UTF-8", "TORCHINDUCTOR_CACHE_DIR": "/"}


# What a worker may read


def readable_paths(packages: Sequence[str]) -> list[str]:
    """List what this Python runs on: its library's modules, installed packages, the system's libraries.

    Not Python's prefix, not site-packages as a whole: a course may lie below them.
    """
    standard = [path for path in sys.path if Path(path).is_relative_to(sys.base_prefix) and path not in packages]
    modules = [entry for path in (*standard, *packages) for entry in _modules_in(Path(path))]
    archives = [path for path in standard if Path(path).is_file()]
    private = (Path(sys.base_prefix, "lib"), Path("/usr/local/lib"))  # below which packages lie as well
    libraries = [str(path) for folder in private for path in folder.glob("*.so*")]
    for folder in dict.fromkeys(Path(path).resolve() for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64")):
        # Where libraries have a folder for each kind of machine, every program keeps files of its own beside it
        machines = [str(path) for path in folder.glob("*-linux-*") if path.is_dir()]
        beside = [str(path) for name in ("*.so*", "locale") for path in folder.glob(name)]
        libraries += [*machines, *beside] if machines else [str(folder)]
    others = ["/etc/ld.so.cache", "/usr/share/zoneinfo"]
    devices = [os.devnull, "/dev/urandom"]  # a shared mapping of /dev/zero is memory that no limit counts
    return list(dict.fromkeys((*modules, *map(os.path.realpath, (*archives, *libraries, *others, *devices)))))


def _modules_in(folder: Path) -> list[str]:
    """List what can be imported from there, and what lies beside it for that: libraries, metadata, compiled files.

    Each without links on its way. There are hundreds, so the folder's own way is gone once for all of them.
    """
    if not folder.is_dir():
        return []
    real, modules = os.path.realpath(folder), []
    with os.scandir(folder) as entries:
        for entry in entries:
            endings = (".libs", ".dist-info", ".egg-info", "-dynload") if entry.is_dir() else (".py", ".so", ".pyc")
            is_module = entry.name.endswith(endings) or (entry.is_dir() and entry.name.isidentifier())
            if is_module and entry.name not in NOT_FOR_WORKERS:
                modules.append(os.path.realpath(entry.path) if entry.is_symlink() else f"{real}{os.sep}{entry.name}")
    return modules


_withheld: set[Path] = set()


def withhold(path: Path) -> None:
    """Let no worker start that could read what lies there: expected values, solutions."""
    _withheld.add(path.resolve())


def refuse_if_within_reach(readable: Sequence[str]) -> None:
    """Raise SandboxError where a worker that may read all this could read what is withheld."""
    for path in _withheld:
        for reached in {str(path), *map(str, path.parents)} & set(readable):
            raise SandboxError(
                f"{path} holds what no submission may read, but lies inside {reached}, which every submission may. "
                "Move the course somewhere else: outside installed packages and the system's libraries."
            )


# Code of the course's own: it imports what it likes, and leaves no trace here


def run_in_subprocess(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Return what `function` returns, or raise what it raises, in a fresh interpreter. All of it must be picklable."""
    import multiprocessing  # which `check` need not wait for
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(function, *arguments, **named).result()
        except BrokenProcessPool as error:
            raise FixtureError(f"The process that ran {function.__name__} ended before it was done.") from error

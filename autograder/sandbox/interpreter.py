"""The Python that servers and workers run in: how it is started, what it finds in its environment, what it may read."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import ntpath
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from autograder.vocabulary.errors import FixtureError, SandboxError
from autograder.vocabulary.files import ENGINE

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
    from autograder.sandbox.isolation import namespaces
    namespaces.enter(boot["server"]["readable"])
from autograder.sandbox.worker import server, worker
if boot["torch"]:
    worker.know_torch()
sys.path.remove(boot["root"])
server.forget_places(boot["root"])
gc.freeze()
gc.enable()
sys.argv[:] = [""]
server.serve(**boot["server"]) if "server" in boot else worker.main_on_stdio()
"""


def command(boot: dict[str, Any], *, torch: bool = True) -> list[str]:
    """A Python that processes no site, no user or current folder: only the packages that the grader itself runs on.

    torch   whether it imports torch at once
    """
    boot = {**boot, "torch": torch, "root": str(KIT_ROOT), "packages": packages()}
    return [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, json.dumps(boot)]


def packages() -> list[str]:
    """The folders of installed packages that this Python imports from."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def environment() -> dict[str, str]:
    """The environment of a worker: nothing of the grader's own but what the system itself needs."""
    usual = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
    with contextlib.suppress(RuntimeError):  # there may be no home
        usual["MPLCONFIGDIR"] = str(Path.home() / ".cache" / "policy-gradient-autograder")
    if sys.platform == "win32":
        return usual | _of_windows()
    # what malloc holds in huge pages is forked, and let go of, in half the time; other C libraries do not look
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    # the folder is never made: a name without looking
    places = {"PATH": os.defpath, "HOME": "/", "TORCHINDUCTOR_CACHE_DIR": "/tmp"}
    return usual | tunables | places | {"LC_ALL": "C.UTF-8"}


def _of_windows() -> dict[str, str]:
    """What Windows cannot do without: sockets, so `asyncio`, need SystemRoot; files that last a moment need TEMP."""
    kept = {name: value for name, value in os.environ.items() if name.upper() in WINDOWS}
    root = next((value for name, value in kept.items() if name.upper() == "SYSTEMROOT"), r"C:\Windows")
    temporary = tempfile.gettempdir()
    needed = {"SYSTEMROOT": root, "TEMP": temporary, "TMP": temporary, "TORCHINDUCTOR_CACHE_DIR": temporary}
    path = os.pathsep.join([ntpath.join(root, "System32"), root])
    upper = {name.upper(): value for name, value in kept.items()}
    return upper | needed | {"PATH": path, "USERNAME": "student", "USERPROFILE": temporary}


def readable_paths(packages: Sequence[str]) -> list[str]:
    """What this Python runs on, each by its name: its library's modules, installed packages, the system's libraries.

    Not Python's prefix, not site-packages as a whole: a course may lie below them.
    """
    standard = [path for path in sys.path if Path(path).is_relative_to(sys.base_prefix) and path not in packages]
    modules = [entry for path in (*standard, *packages) for entry in _modules_in(Path(path))]
    archives = [path for path in standard if Path(path).is_file()]
    private = (Path(sys.base_prefix, "lib"), Path("/usr/local/lib"))  # below which packages lie as well
    shared = [str(path) for folder in private for path in folder.glob("*.so*")]
    folders = dict.fromkeys(map(os.path.realpath, ("/lib", "/lib64", "/usr/lib", "/usr/lib64")))
    system = [path for folder in folders for path in _libraries_in(Path(folder))]
    system += ["/etc/ld.so.cache", "/usr/share/zoneinfo"]
    devices = [os.devnull, "/dev/urandom"]  # a shared mapping of /dev/zero is memory that no limit counts
    others = [os.path.realpath(path) for path in (*archives, *shared, *system, *devices)]
    return list(dict.fromkeys((*modules, *others)))


def _libraries_in(folder: Path) -> list[str]:
    """What the loader finds there: where libraries have a folder for each kind of machine, not what lies beside it.

    There every program keeps files of its own, of which no worker needs any.
    """
    machines = [str(path) for path in folder.glob("*-linux-*") if path.is_dir()]
    if not machines:
        return [str(folder)]
    return [*machines, *(str(path) for name in ("*.so*", "locale") for path in folder.glob(name))]


def _modules_in(folder: Path) -> list[str]:
    """What can be imported from there, and what lies beside it for that: libraries, metadata, compiled files.

    Each without links on its way. There are hundreds, so the folder's own way is gone once for all of them.
    """
    if not folder.is_dir():
        return []
    real = os.path.realpath(folder)
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if entry.name not in NOT_FOR_WORKERS and _is_of_a_package(entry)]
    return [os.path.realpath(one.path) if one.is_symlink() else os.path.join(real, one.name) for one in found]  # noqa: PTH118


def _is_of_a_package(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir():
        return entry.name.isidentifier() or entry.name.endswith((".libs", ".dist-info", ".egg-info", "-dynload"))
    return entry.name.endswith((".py", ".so", ".pyc"))


# What no worker may reach

_withheld: set[Path] = set()


def withhold(path: Path) -> None:
    """Let no worker start that could read what lies there: expected values, solutions."""
    _withheld.add(path.resolve())


def refuse_if_within_reach(readable: Sequence[str]) -> None:
    """Raises SandboxError where a worker that may read all this could read what is withheld."""
    for path in _withheld:
        for reached in {str(path), *map(str, path.parents)} & set(readable):
            raise SandboxError(
                f"{path} holds what no submission may read, but lies inside {reached}, which every submission may. "
                "Move the course somewhere else: outside installed packages and the system's libraries."
            )


P = ParamSpec("P")
R = TypeVar("R")


def run_in_subprocess(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What `function` returns or raises, from a fresh interpreter. Function, arguments and result must be picklable.

    Ctrl-C reaches this process alone, which then ends the other.
    """
    context = multiprocessing.get_context("spawn")
    answers, their_end = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(their_end, function, arguments, named))
    with answers:
        with their_end, _without_interrupts():
            process.start()
        try:
            returned, raised = answers.recv()
        except EOFError as error:
            raise FixtureError(f"The process that ran {function.__name__} ended before it was done.") from error
        except BaseException:
            process.kill()
            raise
        finally:
            process.join()
    if raised is not None:
        raise raised
    result: R = returned
    return result


def _answer(
    answers: Connection, function: Callable[..., object], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    try:
        answers.send((function(*arguments, **named), None))
    except Exception as error:
        error.add_note(traceback.format_exc())
        answers.send((None, error))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: a process that is started meanwhile ignores it for good."""
    if threading.current_thread() is not threading.main_thread():  # no other may set how signals are handled
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

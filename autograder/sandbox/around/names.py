"""Which paths a worker may name, and that all of them were looked up and read before one does.

What is readable (see `interpreter`) is a list of folders; here it becomes a list of files: what can be imported and
what packages read besides. Not what a compiler or a browser would want of a package, not packages that nothing which
students may import asks for, and of the system's libraries those that something on the list is linked with.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from autograder.sandbox.inside.isolation import TOOLS
from autograder.sandbox.inside.kernel.naming import DAY, read_ahead
from autograder.sandbox.interpreter import packages, readable_paths
from autograder.vocabulary.files import write_atomically

FOR_STUDENTS = ("torch", "numpy", "einops", "matplotlib", "tqdm", *TOOLS)  # packages; and what these ask for
NOT_READ = (
    ".a", ".h", ".hpp", ".cuh", ".c", ".cpp", ".cu", ".pyi", ".pyx", ".pxd", ".js", ".map", ".woff", ".woff2", ".cmake",
)  # fmt: skip
NOT_ENTERED = {"tests", "test", "include", "static", "bin", "licenses", "posix", "right"}
NOT_ON_A_PROCESSOR = {
    "nvidia",
    "triton",
}  # gigabytes for other devices; the libraries that torch itself needs are loaded
LOADED_BY_NAME = ("libgcc_s.so.1",)  # by the C library, when a thread ends
ALSO = (os.devnull, "/dev/urandom", "/etc/ld.so.cache", "/usr/share/zoneinfo")
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
AGAIN_AFTER = 60.0  # seconds
GIVING_BACK = (  # of /proc/vmstat: what the kernel took for lack of memory, was told to drop, or dropped of its own
    "pgsteal_file", "slabs_scanned", "drop_pagecache", "drop_slab", "workingset_nodes", "workingset_refault_file",
)  # fmt: skip
NAMES, READ = "names.json", "read.json"


_lock = threading.Lock()
_last_reading: dict[str, Any] = {}  # by this process: of what, until when it counts, when it was


class Named(NamedTuple):
    """What may be named, each path by its real name, and folders that have another one: (that, the real one)."""

    names: tuple[str, ...]
    spelt: tuple[tuple[str, str], ...]


def named() -> Named:
    """All that a worker of this Python may name: files, the folders they lie in, and those that lead there.

    To look it all up takes a second, so it is kept until something is installed.
    """
    readable = readable_paths(packages())
    return _named(_mark_of(readable), tuple(readable))


@functools.lru_cache(maxsize=1)
def _named(mark: str, readable: tuple[str, ...]) -> Named:
    kept = _kept(NAMES)
    if kept.get("of") != mark:
        kept = {"of": mark, "names": _looked_up(readable), "spelt": _spelt([*sys.path, sys.prefix, *SYSTEM])}
        _keep(NAMES, kept)
    return Named(tuple(kept["names"]), tuple((other, own) for other, own in kept["spelt"]))


def _mark_of(readable: Sequence[str]) -> str:
    """What changes with what is installed: each folder's last change, and this list's own rules."""
    changed = [(path, os.stat(path).st_mtime_ns) for path in readable if os.path.exists(path)]  # noqa: PTH110, PTH116
    return hashlib.sha256(repr((changed, sys.path, Path(__file__).read_bytes())).encode()).hexdigest()


def _looked_up(readable: Sequence[str]) -> list[str]:
    system = set(map(os.path.realpath, SYSTEM))
    folders = [os.path.realpath(path) for path in sys.path if Path(path).is_dir()]
    left_out = _foreign() | NOT_ON_A_PROCESSOR
    own = [path for path in readable if not _is_in(path, system) or _is_in(path, folders)]
    found = [file for path in own if Path(path).name not in left_out for file in _below(path)]
    found += [file for path in ALSO for file in _below(os.path.realpath(path))]
    found += _linked([path for path in found if ".so" in path], _libraries(system))
    above = {str(parent) for path in (*found, *folders) for parent in Path(path).parents}
    return list(dict.fromkeys((*found, *folders, *sorted(above))))


def _is_in(path: str, folders: Collection[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _below(path: str) -> Iterator[str]:
    """That file; that folder and all in it that a worker may need."""
    if not Path(path).is_dir():
        if not path.endswith(NOT_READ):
            yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in NOT_ENTERED]
        yield from (f"{folder}/{name}" for name in files if not name.endswith(NOT_READ))


def _spelt(paths: Sequence[str]) -> list[tuple[str, str]]:
    """The symbolic links on the way to these paths, and where each leads."""
    places = dict.fromkeys(place for path in paths if path for place in (Path(path), *Path(path).parents))
    return [(str(place), os.path.realpath(place)) for place in places if place.is_symlink()]


# Packages that nothing which students may import asks for


def _foreign() -> frozenset[str]:
    """The names, beside the packages, of all that another distribution has installed; none where none tells."""
    import importlib.metadata  # which takes as long as half of what is kept saves

    wanted = _asked_for(FOR_STUDENTS)
    ours: set[str] = set()
    others: set[str] = set()
    for distribution in importlib.metadata.distributions(path=packages()):
        folder = Path(str(getattr(distribution, "_path", "")))
        names = _installed_by(folder) | {folder.name}
        (ours if _normal(folder.name.partition("-")[0]) in wanted else others).update(names)
    return frozenset(others - ours)


def _asked_for(names: Collection[str]) -> frozenset[str]:
    """These distributions and all that they require in turn, whatever the conditions are."""
    import importlib.metadata

    found: set[str] = set()
    left = [_normal(name) for name in names]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                required = importlib.metadata.distribution(name).requires or []
                plain = [one for one in required if "extra ==" not in one]
                left += [_normal(re.split(r"[^\w.-]", one, maxsplit=1)[0]) for one in plain]
    return frozenset(found)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed_by(folder: Path) -> set[str]:
    try:
        lines = (folder / "RECORD").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {line.lstrip('"').split("/", 1)[0].split(",", 1)[0] for line in lines} - {"", "..", "__pycache__"}


# The system's libraries


def _libraries(folders: Collection[str]) -> dict[str, str]:
    """Those that the loader would find, by name."""
    readable = [Path(path) for path in readable_paths([]) if _is_in(path, folders)]
    files = [file for path in readable for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return {file.name: str(file) for file in files if ".so" in file.name}


def _linked(files: Sequence[str], libraries: dict[str, str]) -> Iterator[str]:
    """The libraries that these files are linked with, and those that they are linked with in turn."""
    seen: set[str] = set()
    left = [*LOADED_BY_NAME, *(name for file in files for name in _needed_by(file))]
    while left:
        name = left.pop()
        if name in libraries and name not in seen:
            seen.add(name)
            yield libraries[name]
            left += _needed_by(libraries[name])


def _needed_by(path: str) -> list[str]:
    """The libraries that a file names which is in the loader's format of 64 bits (elf(5)); none where it is another."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return _needed(file.fileno())
    except (OSError, struct.error, ValueError):
        return []


def _needed(file: int) -> list[str]:
    head = os.pread(file, 64, 0)
    if head[:6] != b"\x7fELF\x02\x01":
        return []
    start, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
    table = os.pread(file, size * count, start)
    parts = [struct.unpack_from("<IIQQQQ", table, size * k) for k in range(count)]  # kind, flags, offset, address, …
    dynamic = next((os.pread(file, part[5], part[2]) for part in parts if part[0] == 2), b"")
    entries = list(struct.iter_unpack("<qQ", dynamic[: len(dynamic) // 16 * 16]))
    texts = next((value for tag, value in entries if tag == 5), 0)
    place = next(
        (texts - part[3] + part[2] for part in parts if part[0] == 1 and part[3] <= texts < part[3] + part[5]), 0
    )
    return [os.pread(file, 256, place + value).partition(b"\0")[0].decode() for tag, value in entries if tag == 1]


# Read before


def have_been_read() -> None:
    """Return once all that may be named has been looked up and read.

    Again, but once a minute at most, if the kernel gave memory back since, or a reading was noted a day ago. That takes
    a second where all of it is in memory already. Where neither is so since an earlier run, that one's reading counts.
    What may be named is looked up once a minute, too: of each submission that would be 2,600 system calls, 8 ms.
    """
    with _lock:
        last = _last_reading or _kept(READ)
        looked, at = _last_reading.get("looked", -math.inf), time.monotonic()
        counted = _last_reading["names"] if at < looked + AGAIN_AFTER else len(named().names)
        now = {"names": counted, "given back": _given_back()}
        if all(now[key] and last.get(key) == now[key] for key in now) and time.time() < last.get("until", 0.0):
            _last_reading.update(last)
        elif not _last_reading or at > _last_reading.get("on", 0.0) + AGAIN_AFTER:
            until = min(read_ahead(named().names), time.time()) + DAY
            _last_reading.update(now, until=until, on=time.monotonic())
            _keep(READ, now | {"until": until})
        else:  # something is new, but the last reading is of this minute: who comes next looks again
            return
        if at >= looked + AGAIN_AFTER:
            _last_reading.update(looked=at)


def read_meanwhile() -> None:
    """The same while others go on; whoever needs it will wait for it, and hear what went wrong."""
    with contextlib.suppress(Exception):
        have_been_read()


def _given_back() -> str:
    """What has changed when the kernel has taken a page or a name from memory; nothing where it does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        counts = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return ""
    return " ".join([boot, *(line for line in counts if line.startswith(GIVING_BACK))])


def _kept(name: str) -> dict[str, Any]:
    """What an earlier run has kept under this name; nothing where it has not, or where it is damaged."""
    try:
        kept = json.loads((_folder() / name).read_bytes())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: there is no home
        return {}
    return kept if isinstance(kept, dict) else {}


def _keep(name: str, content: dict[str, Any]) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        _folder().mkdir(parents=True, exist_ok=True)
        write_atomically(_folder() / name, json.dumps(content), lasting=False)


def _folder() -> Path:
    return Path.home() / ".cache" / "policy-gradient-autograder"

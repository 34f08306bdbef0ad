"""Names that a worker may name: a list of paths that nothing can change, and no other path reaches the kernel.

Landlock decides what may be opened, not what may be looked up, and a look-up leaves a trace that all processes share:
the kernel remembers every name that was asked for, also one that is not there (1.6 µs instead of 5 µs the next time).
So one submission could leave as many bits as it likes, for a later one that asks for the same names. seccomp cannot
read a path. But it sees where the path stands:

    seal     the warm server writes all names that may be named, one in each slot, into a region of low addresses, and
             makes it read-only; `seccomp` then refuses whatever could map, unmap or change what lies there
    answer   a call whose path stands anywhere else is trapped, before the kernel looks at it; the handler finds the
             path in the list and asks again with the one in the region. What is not listed is not there

All that is listed was looked up and read before (see `autograder.sandbox.around.names`), so that nobody can leave a
trace by doing so. A submission may take the handler away: then its calls are refused.

The handler is Python, which one thread runs at a time. While the loader opens a library, it holds a lock of its own:
should another thread get its turn in Python meanwhile and load something, too, each would wait for the other without
end. So threads load libraries one after another (`load_in_turn`).

Only the standard library and ctypes: this runs inside the worker. Sources: seccomp(2), signal(7), path_resolution(7).
"""

from __future__ import annotations

import _imp
import contextlib
import ctypes
import functools
import math
import os
import posixpath
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.sandbox.inside.processes import LIBC

START = 0x60000000  # below 4 GiB, where nothing lies but a program with fixed addresses, far below
SLOT = 512  # a name with its end: a pointer into the middle of one would be another name
MOST = 2**16
CHUNK, MOSTLY = 2**20, 0.9
DAY = 86_400.0  # seconds
_CACHESTAT, _ARENAS = 451, -8
_TURN_SECONDS = 4.0  # what a library runs when it is loaded may wait for a module that this thread is importing
# Calls that take a path: name → number on x86-64 and on 64-bit ARM, and which argument the path is.
CALLS = {
    "open": (2, -1, 0), "openat": (257, 56, 1), "stat": (4, -1, 0), "lstat": (6, -1, 0), "newfstatat": (262, 79, 1),
    "statx": (332, 291, 1), "access": (21, -1, 0), "faccessat": (269, 48, 1), "faccessat2": (439, 439, 1),
    "readlink": (89, -1, 0), "readlinkat": (267, 78, 1), "chdir": (80, 49, 0),
}  # fmt: skip
_EMPTY_PATH = 0x1000  # AT_EMPTY_PATH: what the descriptor itself is
_OF_DESCRIPTORS = {"newfstatat": 3, "statx": 2}  # which argument has that flag
_OPENING = {"open": 1, "openat": 2}  # which argument says what for
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MMAP = (9, 222)
_NOT_THERE, _FORBIDDEN, _HERE = -2, -13, -100
_ALONE = None if LIBC is None else ctypes.PyDLL(None, use_errno=True)  # no other thread runs meanwhile
_READ, _WRITE, _PRIVATE, _ANONYMOUS, _NOT_OVER_ANOTHER = 1, 2, 2, 0x20, 0x100000


@dataclass(frozen=True)
class Names:
    """A sealed region: where it ends, where in it each name stands, and what folders are called besides.

    The empty name stands first. `spelt` are pairs of a folder's other name, through a symbolic link, and its own.
    """

    end: int
    places: dict[bytes, int]
    spelt: tuple[tuple[bytes, bytes], ...]

    def place_of(self, path: bytes) -> int | None:
        """Where the region has this path, an absolute one; None where it has not."""
        path = posixpath.normpath(path)
        path = path[1:] if path.startswith(b"//") else path
        found = self.places.get(path)
        for other, own in self.spelt:
            if found is None and (path + b"/").startswith(other + b"/"):
                found = self.places.get(own + path[len(other) :])
        return found


def seal(names: Sequence[str], spelt: Sequence[tuple[str, str]] = ()) -> Names:
    """The region with these absolute paths in it, for good; raises OSError where there is no room at its address."""
    encoded = [name for name in map(os.fsencode, names) if len(name) < SLOT and b"\0" not in name][: MOST - 1]
    content = b"".join(name.ljust(SLOT, b"\0") for name in (b"", *encoded))
    size = len(content) + -len(content) % 2**16  # a whole number of pages, on every machine
    libc = _library()
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    how = _PRIVATE | _ANONYMOUS | _NOT_OVER_ANOTHER
    if libc.mmap(START, size, _READ | _WRITE, how, -1, 0) != START:
        raise OSError(ctypes.get_errno(), f"no room for names at {START:#x}")
    ctypes.memmove(START, content, len(content))
    if libc.mprotect(ctypes.c_void_p(START), ctypes.c_size_t(size), _READ) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _let_memory_be_got_without_a_path(libc)
    places = {name: START + SLOT * (place + 1) for place, name in enumerate(encoded)}
    others = tuple((os.fsencode(other), os.fsencode(own)) for other, own in spelt)
    return Names(START + size, places, others)


def _let_memory_be_got_without_a_path(libc: ctypes.CDLL) -> None:
    """Tell malloc how many arenas it may have: as many as it would, had it asked /sys for the number of processors.

    It asks when a thread needs the tenth or so; and the handler of that call would need memory in turn, without end.
    """
    with contextlib.suppress(AttributeError):  # another C library
        libc.mallopt(_ARENAS, 8 * (os.cpu_count() or 1))


def load_in_turn() -> None:
    """Let threads load libraries one after another, from imports and by ctypes: see above."""
    turn = threading.RLock()
    for module, name in ((_imp, "create_dynamic"), (ctypes, "_dlopen")):
        setattr(module, name, functools.partial(_in_turn, turn, getattr(module, name)))


def _in_turn(turn: Any, load: Callable[..., Any], *arguments: Any) -> Any:
    has_it = turn.acquire(timeout=_TURN_SECONDS)
    try:
        return load(*arguments)
    finally:
        if has_it:
            turn.release()


def read_ahead(paths: Sequence[str]) -> float:
    """Look up each path, have every byte of those that are files in memory, and list folders; since when that is dated.

    Most file systems note when something was read, if the note is older than a day: who reads it first on a day leaves
    a trace. So a byte is read in any case; and the result is the oldest of these notes, as seconds since the epoch, or
    infinity where none is younger than a day: there nothing is noted. What cannot be opened is left out.
    """
    buffer, now, oldest = bytearray(CHUNK), time.time(), math.inf
    for path in paths:
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                kind = os.fstat(file).st_mode
                if stat.S_ISREG(kind) and os.readv(file, [buffer]) == CHUNK:
                    _read_on(file, buffer)
                elif stat.S_ISDIR(kind):
                    os.listdir(file)  # noqa: PTH208 (by its descriptor)
                for noted in (os.fstat(file).st_atime, os.lstat(path).st_atime):  # following a link is noted, too
                    oldest = min(oldest, noted if now - DAY < noted else math.inf)
            finally:
                os.close(file)
    return oldest


def _read_on(file: int, buffer: bytearray) -> None:
    """Have the rest of a large file in memory: by reading it, or if little is missing by asking for that alone."""
    share = share_in_memory(file)
    if share is not None and MOSTLY < share < 1:
        for start in range(0, os.fstat(file).st_size, CHUNK):  # a call asks for no more than a disk takes at once
            os.posix_fadvise(file, start, CHUNK, os.POSIX_FADV_WILLNEED)
        share = share_in_memory(file)
    while share != 1 and os.readv(file, [buffer]) == CHUNK:
        pass


def mapped() -> list[str]:
    """The files of which this process has parts in its memory."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        paths = [line.split(maxsplit=5)[5].rstrip("\n") for line in stream if line.count("/")]
    return [path for path in dict.fromkeys(paths) if path.startswith("/")]


def share_in_memory(file: int) -> float | None:
    """How much of an open file is in memory, from 0 to 1; None where the kernel does not tell, as before 6.5."""
    counted = ctypes.create_string_buffer(40)
    asked = ctypes.create_string_buffer(16)  # from 0 on, as far as it goes
    if LIBC is None or LIBC.syscall(ctypes.c_long(_CACHESTAT), file, asked, counted, 0) != 0:
        return None
    pages = -(-os.fstat(file).st_size // os.sysconf("SC_PAGE_SIZE"))
    return int.from_bytes(counted.raw[:8], sys.byteorder) / max(pages, 1)


def answer(names: Names, name: str, number: int, arguments: Sequence[int]) -> int:
    """The result of a call whose path stands elsewhere, a negative number being an error, as the kernel has it."""
    position = CALLS[name][2]
    given = list(arguments)
    path = ctypes.string_at(given[position]) if given[position] else b""
    if not path:
        flagged = name in _OF_DESCRIPTORS and given[_OF_DESCRIPTORS[name]] & _EMPTY_PATH
        place = START if flagged else None
    elif path.startswith(b"/"):
        place = names.place_of(path)
    elif position == 1 and ctypes.c_int(given[0]).value != _HERE:
        place = None
    else:
        place = names.place_of(os.path.join(os.getcwdb(), path))  # noqa: PTH109, PTH118 (bytes)
    if place is None:
        return _FORBIDDEN if name in _OPENING and given[_OPENING[name]] & _WRITING else _NOT_THERE
    given[position] = place
    assert _ALONE is not None
    result = int(_ALONE.syscall(ctypes.c_long(number), *map(ctypes.c_long, given)))
    return -ctypes.get_errno() if result < 0 else result


def _library() -> ctypes.CDLL:
    if LIBC is None:
        raise OSError(38, "not Linux")
    return LIBC

"""A process that puts the layers on itself and tries what each forbids: which of them hold, printed as JSON.

Only the standard library and ctypes, as whatever runs inside the worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import os
import struct
import sys
from collections.abc import Callable, Sequence

from autograder.sandbox.isolation.layers import LAYERS, apply
from autograder.sandbox.isolation.namespaces import enter
from autograder.sandbox.isolation.processes import LIBC

CANARY_MEGABYTES = 256


def answer(secret: str, readable: Sequence[str]) -> None:
    """Print what `canary` finds."""
    sys.stdout.write(json.dumps(canary(LAYERS, CANARY_MEGABYTES, readable, secret)))


def answer_in_namespaces(secret: str, readable: Sequence[str]) -> None:
    """Print what `canary` finds of the namespaces: as a worker, below a process that has entered them."""
    if refusal := _refusal_of(functools.partial(enter, readable)):
        sys.stdout.write(json.dumps({"namespaces": refusal}))
    elif os.fork() == 0:
        sys.stdout.write(json.dumps(canary(("namespaces",), CANARY_MEGABYTES, readable, secret)))
    else:
        os.wait()


def canary(layers: Sequence[str], megabytes: int, readable: Sequence[str], secret: str) -> dict[str, str]:
    """Put the layers on this process, try what each forbids, and say of each why it does not hold; "" where it does.

    secret   a file that this process could read before
    """
    found: dict[str, str] = {}
    tries: dict[str, list[Callable[[], object]]] = {
        "rlimits": [lambda: bytearray((megabytes + 64) * 2**20)],
        "landlock": [lambda: _read(secret), lambda: _write("/tmp/.autograder-canary")],
        "seccomp": [_open_socket, _fork, lambda: os.execv("/bin/true", ["true"]), lambda: os.kill(os.getppid(), 0)],
        "identity": [_use_capability],
        "namespaces": [
            *(lambda path=path: _read(path) for path in (secret, "/proc/1/status", "/etc/passwd")),
            lambda: _write(f"{sys.prefix}/.autograder-canary"),
            _leave_the_machine,
            *([_use_capability] if os.geteuid() != 0 else []),
        ],
    }
    for layer in layers:
        found[layer] = _refusal_of(functools.partial(apply, [layer], megabytes, readable))
        if not found[layer] and any(_refusal_of(attempt) == "" for attempt in tries[layer]):
            found[layer] = "it is there, but does not hold"
    if "namespaces" in found and not found["namespaces"]:
        found["namespaces"] = _refusal_of(_import_anew)
    return found


def _refusal_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except (OSError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _read(path: str) -> None:
    with open(path, "rb") as stream:  # noqa: PTH123
        stream.read(1)


def _write(path: str) -> None:
    with open(path, "wb") as stream:  # noqa: PTH123
        stream.write(b"canary")
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108


def _import_anew() -> None:
    """Raises OSError where Python is out of reach."""
    try:
        importlib.import_module("unicodedata")
    except ImportError as error:
        raise OSError(2, f"Python cannot be reached in it: {error}") from error


def _leave_the_machine() -> None:
    """Succeeds where there is a network card."""
    import socket

    if not {name for _, name in socket.if_nameindex()} - {"lo"}:
        raise OSError(101, "there is no network")


def _open_socket() -> None:
    import socket

    socket.socket().close()


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _use_capability() -> None:
    """Succeeds only with a capability left."""
    data = ctypes.create_string_buffer(24)
    if LIBC is None or LIBC.capget(struct.pack("Ii", 0x20080522, 0), data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    if not any(data.raw[:4] + data.raw[12:16]):
        raise PermissionError("no capability is left")

"""What answers a system call that seccomp traps: one whose path stands elsewhere, or one that is refused and noted.

Only the standard library and ctypes: this runs inside the worker. Sources: signal(7), seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import platform

from autograder.sandbox.inside.kernel import naming
from autograder.sandbox.inside.kernel.naming import Names
from autograder.sandbox.inside.processes import LIBC

OF_A_PATH = 1  # what a trap of a path says; one that is to be noted says 0
_FRAMES = {  # where a signal handler finds the call's arguments and its result, in bytes from the saved context
    "x86_64": ((104, 112, 136, 56, 40, 48), 144),
    "aarch64": ((184, 192, 200, 208, 216, 224), 184),
}
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_kept: list[object] = []


class _Action(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p), ("mask", ctypes.c_uint8 * 128), ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )  # fmt: skip


def take(column: int, report: int | None, names: Names | None) -> None:
    """Answer calls whose path stands elsewhere, and have each refused call written down and answered as ever.

    Not those that fall back: threads are made with signals blocked, and a trap that is blocked is a kill.
    """
    arguments_at, result_at = _FRAMES[platform.machine()]
    calls = {numbers[column]: name for name, numbers in naming.CALLS.items() if numbers[column] >= 0}

    def handle(_: int, info: int, context: int) -> None:
        number = ctypes.c_int.from_address(info + 24).value
        arguments = [ctypes.c_ulong.from_address(context + offset).value for offset in arguments_at]
        ctypes.c_long.from_address(context + result_at).value = -1  # EPERM
        if names is not None and ctypes.c_int.from_address(info + 4).value == OF_A_PATH:
            result = naming.answer(names, calls[number], number, arguments)
            ctypes.c_long.from_address(context + result_at).value = result
        elif report is not None:
            shown = ", ".join(map(hex, arguments[:4]))
            os.write(report, f"refused: call {number} ({shown}, ...)\n".encode())

    function = _HANDLER(handle)
    _kept.append(function)
    action = _Action(ctypes.cast(function, ctypes.c_void_p), flags=0x40000004)  # SA_NODEFER, SA_SIGINFO
    if LIBC is None or LIBC.sigaction(31, ctypes.byref(action), None) != 0:
        raise OSError(ctypes.get_errno(), "SIGSYS")

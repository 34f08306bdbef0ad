"""This Python made to lack what Windows lacks, so that a student's `check` can be tried as there. Run, not imported.

    python like_windows.py FOLDER ARGUMENTS…     `python -m autograder ARGUMENTS…` in FOLDER

Taken away: fork and its kin, the modules and signals of Unix, `select.poll`; `sys.platform` says win32; the console is
of code page 1252; without SYSTEMROOT `asyncio` cannot be imported, as sockets cannot be made there. What torch needs of
the real system is imported first. Workers are started as on Windows and lack the same.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import runpy
import select
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "crypt", "_posixsubprocess")
OF_OS = (
    "fork", "forkpty", "killpg", "setsid", "getuid", "geteuid", "getgid", "getpgid", "setuid", "nice", "uname",
    "sysconf", "wait", "wait3", "wait4", "mkfifo", "openpty", "chown", "lchown", "statvfs", "sched_getaffinity",
    "memfd_create", "sync", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "WNOHANG",
)  # fmt: skip
SIGNALS = (
    "SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGQUIT", "SIGTSTP", "SIGSTOP",
    "SIGCONT", "SIGXCPU", "setitimer", "ITIMER_REAL", "alarm", "pthread_sigmask", "pthread_kill",
)  # fmt: skip


def become_windows() -> None:
    """Take away what Windows lacks."""
    if not os.environ.get("SYSTEMROOT"):
        raise OSError(10106, "The requested service provider could not be loaded or initialized (import asyncio)")
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for holder, names in ((os, OF_OS), (signal, SIGNALS), (select, ("poll", "epoll"))):
        for name in names:
            if hasattr(holder, name):
                delattr(holder, name)
    builtins.open = _without_proc(builtins.open)  # type: ignore[assignment]
    sys.platform = "win32"


def _without_proc(real: Callable[..., Any]) -> Callable[..., Any]:
    """`open` where there is no /proc."""

    def opened(file: Any, *arguments: Any, **named: Any) -> Any:
        if str(file).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", str(file))
        return real(file, *arguments, **named)

    return opened


def worker(arguments: list[str]) -> None:
    """What the kit starts as `python -S … -c CODE BOOT`, in a Python like that of Windows."""
    assert not os.environ.get("LC_ALL"), "Windows has no such locale"
    at = arguments.index("-c")
    sys.argv = ["-c", *arguments[at + 2 :]]
    import json

    sys.path += json.loads(sys.argv[1])["packages"]
    import einops  # noqa: F401
    import torch  # noqa: F401

    become_windows()
    exec(arguments[at + 1], {"__name__": "__main__"})


def end(process: Any) -> None:
    """What `Popen.kill` does on Windows, where no signal is sent."""
    if process.poll() is None:
        os.kill(process.pid, 9)


def check(folder: str, arguments: list[str]) -> None:
    """The command line of a handout."""
    import multiprocessing.connection  # noqa: F401 (which on Windows imports what Windows alone has)
    import subprocess
    import tempfile  # noqa: F401

    subprocess.Popen.kill = end  # type: ignore[method-assign]
    started = sys.executable
    wrapper = Path(os.environ["LIKE_WINDOWS_WRAPPER"])
    wrapper.write_text(f'#!/bin/sh\nexec "{started}" -S -s -P -B "{HERE}" --worker "$@"\n', encoding="utf-8")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    sys.executable = str(wrapper)
    os.chdir(folder)
    sys.path[0] = folder
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="cp1252", errors="strict")  # type: ignore[union-attr]
    become_windows()
    sys.argv = ["autograder", *arguments]
    runpy.run_module("autograder", run_name="__main__", alter_sys=False)


assert asyncio
if sys.argv[1:2] == ["--worker"]:
    worker(sys.argv[2:])
elif __name__ == "__main__":
    check(sys.argv[1], sys.argv[2:])

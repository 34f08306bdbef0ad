"""The warm server that workers are forked from, as a process seen from outside. Nothing that it says is trusted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from autograder.sandbox import cgroup
from autograder.sandbox.calls import Program
from autograder.sandbox.interpreter import command, environment, packages, readable_paths
from autograder.vocabulary.errors import SandboxError

START_SECONDS = 120.0
SERVER_MEGABYTES = 1024.0  # torch itself included
MAX_THREADS = 512
SERVER_THREADS = 64
REFUSED_CALLS = "AUTOGRADER_REFUSED_CALLS"  # a file: each system call that seccomp refuses is written there
DOCTOR = "Where the whole kit is installed, `autograder doctor` shows what is missing."


class Server:
    """The warm server, seen from outside: one socket, two kinds of message."""

    def __init__(self, layers: Sequence[str], *, torch: bool = True) -> None:
        """Start it with these layers, and with torch or without; it gets warm while the caller goes on."""
        self.torch = torch
        refused = _where_refusals_go()
        self.readable = readable_paths(packages())
        boot = {"layers": list(layers), "readable": self.readable, "refused": refused}
        self._group = _group() if "cgroup" in layers else None
        self._is_warm = False
        self._warmed: set[str] = set()
        self._prepared: dict[str, Any] = {}
        self._unheard = 0  # answers of the server that nobody waited for
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            given = (theirs.fileno(),) if refused is None else (theirs.fileno(), refused)
            self._process = subprocess.Popen(
                command({"server": {**boot, "control": theirs.fileno()}}, torch=torch),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
                pass_fds=given,
                start_new_session=True,
            )
        if refused is not None:
            os.close(refused)
        self._socket.settimeout(START_SECONDS)
        try:
            self._add_to_group()
        except SandboxError:
            self.close()
            raise

    def await_warm(self) -> None:
        """Return once it can be asked; raises SandboxError where it could not start."""
        if not self._is_warm:
            self._receive()
            self._is_warm = True

    def _add_to_group(self) -> None:
        if self._group is not None:
            try:
                self._group.add(self._process.pid)
            except OSError as error:
                raise SandboxError(f"The warm server could not be put into its control group: {error}.") from error

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def warm(self, module: str) -> None:
        """Import a module that some submissions use: what it writes on its first import, no worker may."""
        if module not in self._warmed:
            self._warmed.add(module)
            self._ask({"warm": module})

    def prepare(self, program: Program) -> None:
        """Let the kit's own modules be run and compiled once, not in every worker. Of a submission it sees nothing."""
        own = {"given": dict(program.given), "probes": program.probes}
        if own != self._prepared:
            self._send_file({"prepare": True}, own)
            self._prepared = own

    def fork(self, descriptors: tuple[int, int, int], megabytes: float, seconds: float) -> tuple[int, int]:
        """The process id, as the server sees it and as we do, of a new worker that holds these pipes.

        descriptors          for requests, answers, output
        megabytes, seconds   memory that it may allocate, processor time for its whole life
        """
        if self._group is not None:
            self._group.allow(SERVER_MEGABYTES + megabytes)
        self._send_with(descriptors, {"fork": {"megabytes": megabytes, "seconds": seconds}})
        answer = self._receive()
        return int(answer["pid"]), int(answer["outside"])

    def _send_file(self, message: dict[str, Any], content: dict[str, Any]) -> None:
        """Send what no message has room for, and wait until it is taken."""
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(content).encode())
            file.seek(0)
            self._send_with((file.fileno(),), message)
            self._receive()

    def _send_with(self, descriptors: Sequence[int], message: dict[str, Any]) -> None:
        try:
            socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
        except OSError as error:
            raise SandboxError(self._explain()) from error

    def end(self, pid: int) -> int:
        """Kill a worker and its process group; its wait status."""
        return int(self._ask({"end": pid})["status"])

    def end_meanwhile(self, pid: int) -> int:
        """The same for a worker of which nobody asks how it ended: whatever is asked next is answered once it is gone.

        So nobody waits while the kernel takes back its memory, 4 to 8 ms, who has its answers to judge.
        """
        self._tell({"end": pid})
        self._unheard += 1
        return int(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server. It holds nothing worth the second that torch takes to leave in good order."""
        if self._unheard and self.alive:
            with contextlib.suppress(SandboxError):  # its workers are gone first
                self._hear_all()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        if self._group is not None:
            self._group.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        self._tell(question)
        return self._receive()

    def _tell(self, question: dict[str, Any]) -> None:
        try:
            self._socket.send(json.dumps(question).encode())
        except OSError as error:
            raise SandboxError(self._explain()) from error

    def _receive(self) -> dict[str, Any]:
        """The answer to the last question; those that nobody waited for come first."""
        self._hear_all()
        return self._hear()

    def _hear_all(self) -> None:
        while self._unheard:
            self._unheard -= 1
            self._hear()

    def _hear(self) -> dict[str, Any]:
        try:
            message = self._socket.recv(4096)
        except OSError as error:
            raise SandboxError(self._explain()) from error
        answer = json.loads(message or b"null")
        if not isinstance(answer, dict):  # nothing more comes
            raise SandboxError(self._explain())
        return answer

    def _explain(self) -> str:
        self._process.kill()
        stderr = self._process.stderr.read() if self._process.stderr is not None else b""
        self._process.wait()
        last = (stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return f"The sandbox's warm server stopped: {last}. {DOCTOR}"


def _where_refusals_go() -> int | None:
    path = os.environ.get(REFUSED_CALLS)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if path else None


def _group() -> cgroup.Group:
    try:
        return cgroup.Group(MAX_THREADS + SERVER_THREADS, SERVER_MEGABYTES)
    except OSError as error:
        raise SandboxError(f"A control group could not be made: {error}. {DOCTOR}") from error

"""A Dask cluster of this machine, started as README.md says: a scheduler and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client
from places import KIT
from processes import PATIENCE, wait_for


@dataclass
class Cluster:
    """A scheduler, whose environment may hold more, and its workers; logs and files lie in `folder`."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(json.loads((self.folder / "scheduler.json").read_text())["address"])

    def dask(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        name = self.folder / f"{len(self.processes)}.log"
        with name.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(KIT), **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def __enter__(self) -> Cluster:
        self.folder.mkdir(exist_ok=True)
        place = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.folder / "scheduler.json")]
        self.dask("scheduler", "--no-dashboard", *place, **self.environment)
        wait_for(self.is_listening)
        return self

    def is_listening(self) -> bool:
        """Whether the scheduler has written, to the end, where it is."""
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return bool(self.address)
        return False

    def add_workers(self, count: int, **environment: str) -> subprocess.Popen[bytes]:
        with Client(self.address) as client:
            before = len(client.nthreads())
            options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder)]
            process = self.dask("worker", self.address, "--nworkers", str(count), *options, **environment)
            client.wait_for_workers(before + count, timeout=PATIENCE)
        return process

    def workers(self) -> dict[str, int]:
        """The process ids of the workers by their addresses."""
        with Client(self.address) as client:
            return dict(client.run(os.getpid))

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

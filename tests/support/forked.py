"""Commands in forks of one process that has imported nbgrader, which takes a fresh one 5 s."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["nbgrader.apps.nbgraderapp", "nbgrader.api", "autograder.cli.main"])


def run_module(
    folder: Path, module: str, *arguments: str, environ: Mapping[str, str], user: int | None = None
) -> tuple[int, str]:
    """Run `python -m MODULE ARGUMENTS…` in a folder, as another user where one is given.

    returns   its exit code, and what it printed on both streams
    """
    with tempfile.NamedTemporaryFile() as log:
        process = FORKS.Process(target=_be, args=(folder, module, arguments, dict(environ), log.name, user))
        process.start()
        process.join()
        assert process.exitcode is not None
        return process.exitcode, log.read().decode()


def _be(
    folder: Path, module: str, arguments: tuple[str, ...], environ: dict[str, str], log: str, user: int | None
) -> None:
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ.clear()
    os.environ.update(environ)
    if user is not None:
        os.setuid(user)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)

"""The command line in this process: no second Python is started, and nothing is imported again."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path
from unittest import mock

from autograder.cli.main import main


def autograder_in_process(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """What the command line of this kit does in that folder, as `subprocess.run` tells it."""
    arguments = ["autograder", *map(str, words)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.argv", arguments),
        mock.patch.dict("os.environ", {"COLUMNS": "120"}),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

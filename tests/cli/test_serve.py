"""The verb `serve`: what it prints, whom it serves, how it ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from places import KIT
from sample_reports import report, write_grades
from typer.testing import CliRunner

from autograder.cli.main import app
from autograder.pages.student_page import feedback_page
from autograder.vocabulary.files import write_atomically


def refused(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["serve", *map(str, arguments)])
    assert done.exit_code != 0
    return str(done.exception)


def test_serve_prints_its_address_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    """Of a course, whose assignments are served below its page."""
    folder = write_grades(tmp_path / "course" / "one", report("ada"))
    write_atomically(folder / "feedback" / "ada.html", feedback_page(report("ada")))
    write_atomically(tmp_path / "course" / "index.html", "<body><main>\n<a href='one/index.html'>one</a></main></body>")
    command = [sys.executable, "-m", "autograder", "serve", str(tmp_path / "course")]
    with subprocess.Popen(command, cwd=KIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", running.stdout.readline())
            assert "Ctrl-C ends it" in running.stdout.readline()
            for path, holds in (
                ("", b"one/index.html"),
                ("one/index.html", b"feedback/ada.html"),
                ("one/feedback/ada.html", b"Override or comment"),
            ):
                with urllib.request.urlopen(address + path) as found:
                    assert holds in found.read()
        finally:
            running.send_signal(signal.SIGINT)
        rest, err = running.communicate(timeout=60)
    assert (running.returncode, rest, err) == (130, "", "autograder: stopped.\n")


def test_what_cannot_be_served_is_one_sentence(tmp_path: Path) -> None:
    assert "There is no folder" in refused(tmp_path / "nowhere")
    assert "holds no reports" in refused(tmp_path)
    write_grades(tmp_path / "course" / "one", report("ada"))
    assert "give --submissions for the folder of one" in refused(tmp_path / "course", "--submissions", tmp_path)
    assert "no-form.csv" in refused(tmp_path / "course" / "one", "--requests", tmp_path / "no-form.csv")

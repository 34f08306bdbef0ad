"""Doctor: what it finds on this machine, and what it says where something is missing."""

from __future__ import annotations

import io
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import toy_kit
from rich.console import Console

from autograder.cli.doctor import Examined, State, doctor_table, package

# One package


TORCH, PYTEST = version("torch").split("+")[0], int(version("pytest").split(".")[0])
MADE = "Stored tensors were made with 1.2.3: python -m pip install 'torch==1.2.3'"
WRITTEN = "The kit was written for 1000.1 or newer: python -m pip install 'numpy>=1000.1'"


@pytest.mark.parametrize(
    ("requirement", "state", "advice"),
    [
        ("numpy", "ok", ""),
        ("numpy>=2.0", "ok", ""),
        (f"torch=={TORCH}", "ok", ""),  # whichever build of it
        ("torch==1.2.3", "warning", MADE),
        ("numpy>=1000.1", "warning", WRITTEN),
        (f"pytest>={PYTEST - 1}.10", "ok", ""),  # compared as numbers, not as text
        (f"pytest>=0{PYTEST}.0", "ok", ""),
        ("no-such-package>=1.0", "missing", "python -m pip install 'no-such-package>=1.0'"),
    ],
)
def test_a_package_is_ok_or_says_what_to_install(requirement: str, state: State, advice: str) -> None:
    name = re.split("[=>]", requirement)[0]
    found = "not installed" if state == "missing" else version(name)
    assert package(requirement) == Examined(name, state, found, advice)


# Another machine


def test_doctor_says_what_to_do_about_each_fault(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    kit = toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)
    toy_kit.flip_a_byte(kit / "fixtures" / "toy" / "hidden" / "ramp-values.safetensors")
    (kit / "handout" / "toy" / "requirements.txt").unlink()
    done = toy_kit.autograder(kit, "doctor", packages=toy_kit.packages_without("torch", tmp_path))
    found = dict(re.findall(r"^ (\w+) +(ok|absent|warning|missing) ", done.stdout, re.MULTILINE))
    text = " ".join(done.stdout.split())
    assert done.returncode == 3
    assert {name for name, state in found.items() if state == "missing"} == {"torch", "sandbox", "fixtures"}
    assert "python -m pip install 'torch==" in text
    assert "ModuleNotFoundError" in text
    assert "its SHA-256 differs" in text
    assert "Restore it, or run `autograder fixtures regenerate`." in text
    assert found["handout"] == "warning"
    assert done.stderr == ""


def test_doctor_prints_no_markup() -> None:
    table = doctor_table([Examined("a[b]", "missing", "[red]\x1b[2J:bug:", "[/]")])
    stream = io.StringIO()
    Console(file=stream, width=110, force_terminal=False).print(table)
    assert re.search(r" a\[b\] +missing +\[red\]\\x1b\[2J:bug: +\[/\]", stream.getvalue())

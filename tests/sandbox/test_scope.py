"""A scope of systemd for a grader: when it is asked for, of whom, and what is believed of the answer."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from autograder.sandbox import cgroup, scope
from autograder.sandbox.scope import ask_for_scope

USER = 1234
SESSION = f"0::/user.slice/user-{USER}.slice/session-3.scope\n"
TERMINAL = f"0::/user.slice/user-{USER}.slice/user@{USER}.service/app.slice/terminal.scope\n"


@pytest.fixture
def membership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernel says in which group this process is; nobody lingers, and an ordinary user asks."""
    monkeypatch.setattr(scope, "LINGERING", tmp_path / "linger")
    monkeypatch.setattr(scope, "SECONDS", 0.5)
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("ta", "x", USER, USER, "", "/", "/bin/sh")))
    (tmp_path / "membership").write_text(TERMINAL)
    return tmp_path / "membership"


def manager(folder: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> Path:
    """A `busctl` that writes down how it was called, and does what the shell is told."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "busctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{then}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return folder / "calls"


def moves(membership: Path) -> str:
    return f"echo 0::/user.slice/autograder-{os.getpid()}.scope > {membership}"


def test_a_process_of_the_users_manager_gets_a_scope_of_its_own(
    membership: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = manager(tmp_path, monkeypatch, moves(membership))
    assert ask_for_scope(membership)
    (call,) = calls.read_text().splitlines()
    assert call.startswith("--user call org.freedesktop.systemd1 /org/freedesktop/systemd1 ")
    assert call.endswith(
        f"ssa(sv)a(sa(sv)) autograder-{os.getpid()}.scope fail 2 PIDs au 1 {os.getpid()} Delegate b true 0"
    )


def test_in_a_session_that_may_end_before_the_grader_nothing_is_asked(
    membership: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = manager(tmp_path, monkeypatch, moves(membership))
    membership.write_text(SESSION)
    assert not ask_for_scope(membership)
    assert not calls.exists()
    (tmp_path / "linger").mkdir()
    (tmp_path / "linger" / "ta").touch()
    assert ask_for_scope(membership)


@pytest.mark.parametrize("then", ["exit 1", "true", "sleep 20"], ids=("refused", "not moved", "no answer"))
def test_a_manager_that_does_not_do_it_is_no_scope(
    membership: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    manager(tmp_path, monkeypatch, then)
    assert not ask_for_scope(membership)


@pytest.mark.parametrize(
    ("named", "alone", "asked"), [(None, False, True), (None, True, False), ("", False, False), ("staff", False, False)]
)
def test_a_scope_is_asked_for_where_nobody_named_a_group_and_the_process_shares_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, alone: bool, asked: bool
) -> None:
    monkeypatch.delenv(cgroup.VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(cgroup.VARIABLE, named)
    group = tmp_path / "mounted" / "user.slice"
    group.mkdir(parents=True)
    for name, text in {
        "cgroup.controllers": "memory pids\n",
        "user.slice/cgroup.subtree_control": "memory pids\n",
    }.items():
        (tmp_path / "mounted" / name).write_text(text)
    (group / "cgroup.procs").write_text(f"{os.getpid()}\n" if alone else f"1\n{os.getpid()}\n")
    (tmp_path / "membership").write_text("0::/user.slice\n")
    monkeypatch.setattr(cgroup, "MEMBERSHIP", tmp_path / "membership")
    calls: list[Path] = []
    monkeypatch.setattr(cgroup, "ask_for_scope", lambda path: bool(calls.append(path)))
    cgroup.probe(tmp_path / "mounted")
    assert bool(calls) == asked

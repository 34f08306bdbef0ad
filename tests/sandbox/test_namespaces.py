"""What stands round a server: namespaces, and the control group that staff may set aside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

from autograder.sandbox import cgroup
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox, probe

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")
SLOW = 120.0  # seconds: what an emulated machine takes that does other things besides
PROBES = """
def call(student, inputs, params):
    return {}, {"fact": getattr(student, params["call"])()}
"""


def run(sandbox: Sandbox, source: str, *calls: str, **budgets: float) -> list[Outcome]:
    program = Program("submission", "import os\n" + textwrap.dedent(source), {}, PROBES)
    nothing = safetensors.numpy.save({})
    requests = [Request(name, name, "call", {"call": name}, nothing, SLOW, **budgets) for name in calls]
    return sandbox.run(program, requests, load_timeout=SLOW)


def fact_of(outcome: Outcome) -> Any:
    assert outcome.observation is not None, outcome
    return outcome.observation.facts["fact"]


# Namespaces


@pytest.fixture(scope="module")
def alone() -> Iterator[Sandbox]:
    """A sandbox with namespaces and no other layer: what they hold, they hold alone."""
    if probe()["namespaces"]:
        pytest.skip(f"this machine cannot: {probe()['namespaces']}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.sandbox.sandbox.probe", lambda: {"namespaces": ""})
        sandbox = Sandbox()
    with sandbox:
        assert sandbox.layers == ("process", "namespaces")
        yield sandbox


@linux
def test_in_namespaces_no_file_process_or_network_of_the_machine_is_there(alone: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of another student")
    source = f"""
        import socket
        def files():
            places = ({str(secret)!r}, {str(tmp_path)!r}, "/proc/self", "/etc/passwd", "/var/log")
            return [os.path.exists(path) for path in places]
        def processes():
            try: os.kill({os.getpid()}, 0)
            except OSError as error: return [os.getpid() < 100, os.getppid(), error.strerror]
        def network():
            return [name for _, name in socket.if_nameindex()]
        def write():
            found = []
            for folder in ("/", os.path.dirname(os.__file__), "/dev"):
                try: open(folder + "/x", "w")
                except OSError as error: found.append(error.strerror)
            return found
        def capabilities():
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            return [libc.unshare(0x20000), libc.mount(b"x", b"/dev", b"tmpfs", 0, None), libc.chroot(b"/dev")]
    """
    outcomes = run(alone, source, "files", "processes", "network", "write", "capabilities")
    files, processes, network, write, capabilities = map(fact_of, outcomes)
    assert files == [False] * 5
    assert processes == [True, 1, "No such process"]
    assert network == ["lo"]
    assert write == ["Read-only file system"] * 3
    if os.geteuid() != 0:  # of root the layer `identity` takes them
        assert capabilities == [-1] * 3


@linux
def test_a_process_that_leaves_its_group_and_session_ends_with_its_worker(alone: Sandbox) -> None:
    source = """
        import time
        def leave():
            for _ in range(3):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        time.sleep(60)
                    os._exit(0)
                os.wait()
            return [os.getpid()]
        def left():
            found = 0
            for pid in range(2, 500):
                try: os.kill(pid, 0)
                except OSError: continue
                found += pid != os.getpid()
            return found
    """
    assert len(fact_of(run(alone, source, "leave")[0])) == 1
    assert fact_of(run(alone, source, "left")[0]) == 0


@linux
def test_a_worker_in_namespaces_is_watched_as_any_other(alone: Sandbox) -> None:
    source = """
        import time
        def burn():
            while True: pass
        def hold():
            held = []
            while True: held.append(bytearray(2**20)) if len(held) < 400 else time.sleep(1)
        def crash():
            os.abort()
        def work():
            return 1
    """
    (burnt,) = run(alone, source, "burn", cpu=3)
    assert (burnt.status, burnt.exceeded) == ("timed_out", "used more than 3 s of processor time")
    # No budget of time beside it: where a machine is slow, to fill memory takes seconds of it.
    outcomes = run(alone, source, "hold", "crash", "work", memory_megabytes=64)
    assert [outcome.status for outcome in outcomes] == ["out_of_memory", "crashed", "observed"]
    assert outcomes[0].exceeded == "used more than 64 MiB of memory"
    assert outcomes[1].detail == "killed by signal 6 (SIGABRT)"


@linux
def test_nothing_is_left_of_a_server_in_namespaces(alone: Sandbox) -> None:
    def mounts() -> str:
        return Path("/proc/self/mounts").read_text()

    before = mounts()
    run(alone, "def work():\n    return 1\n", "work")
    assert mounts() == before
    alone.close()
    assert mounts() == before


# Control groups


class Hierarchies:
    """Files in the place of the kernel's: what is written to them is what it would be asked."""

    def __init__(self, mounted: Path, version: int, name: str = "staff/autograder") -> None:
        self.mounted = mounted
        self.parents = [mounted / name] if version == 2 else [mounted / each / name for each in cgroup.CONTROLLERS]
        for parent in self.parents:
            parent.mkdir(parents=True)
        if version == 2:
            (mounted / "cgroup.controllers").write_text("cpu memory pids\n")
            (self.parents[0] / "cgroup.subtree_control").write_text("cpu\n")


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_is_made_below_the_one_that_was_set_aside_and_goes_with_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setenv(cgroup.VARIABLE, "/staff/autograder/")
    made = Hierarchies(tmp_path, version)
    group = cgroup.Group(16, 64, tmp_path)
    (first,) = {path.name for parent in made.parents for path in parent.glob("server-*")}
    assert first.startswith(f"server-{os.getpid()}-")
    if version == 2:
        assert (made.parents[0] / "cgroup.subtree_control").read_text() == "+memory +pids"
    group.close()
    assert [path for parent in made.parents for path in parent.glob("server-*")] == []


@pytest.mark.parametrize("version", [1, 2])
def test_groups_of_graders_that_are_gone_are_removed_and_those_of_living_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setenv(cgroup.VARIABLE, "staff/autograder")
    made = Hierarchies(tmp_path, version)
    gone = subprocess.Popen(["true"])
    gone.wait()
    for parent in made.parents:
        for name in (f"server-{gone.pid}-0", f"server-{gone.pid}-1", f"server-{os.getpid()}-7", "of-somebody-else"):
            (parent / name).mkdir()
    assert cgroup.sweep(tmp_path) == 2 * len(made.parents)
    for parent in made.parents:
        assert {path.name for path in parent.iterdir() if path.is_dir()} == {
            f"server-{os.getpid()}-7",
            "of-somebody-else",
        }


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("nowhere", "nowhere is not there, or not to be written by this user"),
        ("../../tmp", "should name a group"),
        ("a b", "should name a group"),
    ],
)
def test_where_no_group_was_set_aside_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, why: str
) -> None:
    monkeypatch.setenv(cgroup.VARIABLE, named)
    assert why in cgroup.probe(tmp_path)


@pytest.fixture
def own_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group of version 2 in which this process is, in files."""
    monkeypatch.delenv(cgroup.VARIABLE, raising=False)
    made = Hierarchies(tmp_path / "mounted", 2, "user.slice/run-r1.scope")
    monkeypatch.setattr(cgroup, "MEMBERSHIP", tmp_path / "membership")
    (tmp_path / "membership").write_text("3:cpu,cpuacct:/\n0::/user.slice/run-r1.scope\n")
    (made.parents[0] / "cgroup.procs").write_text(f"{os.getpid()}\n")
    monkeypatch.setattr(cgroup, "ask_for_scope", lambda _: False)
    return made.parents[0]


def test_a_process_that_has_a_group_to_itself_moves_into_a_leaf_and_makes_its_groups_beside(own_group: Path) -> None:
    mounted = own_group.parents[1]
    assert cgroup.parents(mounted) == [own_group]
    assert (own_group / "grader" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own_group / "cgroup.subtree_control").read_text() == "+memory +pids"
    (own_group.parents[2] / "membership").write_text("0::/user.slice/run-r1.scope/grader\n")
    (own_group / "cgroup.subtree_control").write_text("memory pids\n")
    assert cgroup.parents(mounted) == [own_group]


def test_a_process_that_shares_its_group_moves_nobody_and_says_what_to_do(own_group: Path) -> None:
    (own_group / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    assert "systemd-run --user --scope -p Delegate=yes" in cgroup.probe(own_group.parents[1])
    assert not (own_group / "grader").exists()
    assert (own_group / "cgroup.subtree_control").read_text() == "cpu\n"


@pytest.fixture
def set_aside(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """A real group, for this test alone, where this machine lets us make one."""
    name = f"autograder-test-{os.getpid()}"
    one = (cgroup.MOUNTED / "cgroup.controllers").exists()
    folders = [cgroup.MOUNTED / name] if one else [cgroup.MOUNTED / each / name for each in cgroup.CONTROLLERS]
    try:
        try:
            for folder in folders:
                folder.mkdir()
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        monkeypatch.setenv(cgroup.VARIABLE, name)
        if why := cgroup.probe():
            pytest.skip(f"control groups do not hold here: {why}")
        yield folders
    finally:
        for folder in folders:
            for path in [*folder.glob("server-*"), folder]:
                if path.is_dir():
                    path.rmdir()


@linux
def test_a_control_group_holds_what_no_other_layer_would(
    set_aside: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.sandbox.sandbox.probe", lambda: {"cgroup": ""})
    source = """
        def fork():
            for _ in range(2000):
                os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        def work():
            return 1
    """
    with Sandbox() as sandbox:
        assert sandbox.layers == ("process", "cgroup")
        outcomes = run(sandbox, source, "fork", "work")
        assert [len(list(folder.glob("server-*"))) for folder in set_aside] == [1] * len(set_aside)
    assert [outcome.status for outcome in outcomes] == ["raised", "observed"]
    assert outcomes[0].raised is not None
    assert "Resource temporarily unavailable" in outcomes[0].raised.message
    assert [len(list(folder.glob("server-*"))) for folder in set_aside] == [0] * len(set_aside)


def test_a_secret_file_is_made_outside_of_what_python_runs_on() -> None:
    """The canary reads one: it proves something only where the new root does not show it."""
    from autograder.sandbox.interpreter import packages, readable_paths

    assert not any(Path(tempfile.gettempdir()).is_relative_to(path) for path in readable_paths(packages()))

"""What stands round a server: namespaces."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

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
def test_namespaces_hide_files_processes_and_network(alone: Sandbox, tmp_path: Path) -> None:
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
def test_process_outside_group_ends_with_its_worker(alone: Sandbox) -> None:
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


def test_temporary_folder_is_not_readable() -> None:
    """The canary reads one: it proves something only where the new root does not show it."""
    from autograder.sandbox.interpreter import packages, readable_paths

    assert not any(Path(tempfile.gettempdir()).is_relative_to(path) for path in readable_paths(packages()))

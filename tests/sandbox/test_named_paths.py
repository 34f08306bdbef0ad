"""What a worker may name: a list of paths, all looked up and read before; and no other path reaches the kernel."""

from __future__ import annotations

import importlib.metadata
import math
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.numpy
from places import KIT

from autograder.sandbox.around import names
from autograder.sandbox.around.names import _below, _needed_by, have_been_read, named
from autograder.sandbox.calls import Program, Request
from autograder.sandbox.inside.kernel.naming import DAY, read_ahead, share_in_memory
from autograder.sandbox.layers import probe
from autograder.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has layers")
has_seccomp = pytest.mark.skipif(bool(probe()["seccomp"]), reason=f"this machine has none: {probe()['seccomp']}")


@pytest.fixture
def kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for what runs keep, and nothing kept yet."""
    monkeypatch.setattr(names, "_folder", lambda: tmp_path / "kept")
    monkeypatch.setattr(names, "_last_reading", {})
    yield tmp_path / "kept"
    names._named.cache_clear()


# The list


def test_every_module_that_a_worker_has_loaded_is_named() -> None:
    loaded = "import torch, numpy, einops, matplotlib.pyplot, tqdm.auto, IPython, sqlite3, zoneinfo, sys"
    code = f"{loaded}; print(*{{m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)}}, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    files = {os.path.realpath(line) for line in done.stdout.splitlines() if "editable" not in line}
    assert len(files) > 1_000
    assert files - set(named().names) - {file for file in files if Path(file).is_relative_to(KIT)} == set()


def test_what_no_assignment_lets_import_is_not_named_nor_what_a_compiler_would_want() -> None:
    def place(name: str) -> str:
        return os.path.realpath(str(importlib.metadata.distribution(name).locate_file(name)))

    torch, nbformat = place("torch"), place("nbformat")
    assert any(path.startswith(f"{torch}/") for path in named().names)
    assert not [path for path in named().names if path.startswith(f"{nbformat}/")]
    assert not [path for path in named().names if path.endswith((".h", ".a", ".pyi"))]
    assert Path(torch, "include").is_dir()
    assert not [path for path in named().names if path.startswith(f"{torch}/include/")]


def test_pythons_own_library_is_named_also_where_it_lies_among_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path(os.path.realpath(os.__file__)).parent
    monkeypatch.setattr(names, "SYSTEM", (str(library.parent),))
    found = names._looked_up([str(path) for path in library.glob("w*.py")])
    assert str(library / "wave.py") in found


def test_of_a_folder_what_can_be_imported_or_read_is_named(tmp_path: Path) -> None:
    for name in ("one.py", "table.json", "fast.so", "fast.h", "include/torch.h", "tests/test_one.py", "part/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {str(Path(path).relative_to(tmp_path)) for path in _below(str(tmp_path))}
    assert found == {"one.py", "table.json", "fast.so", "part/two.py"}


def test_a_library_says_what_it_is_linked_with_and_other_files_nothing(tmp_path: Path) -> None:
    import _ctypes

    assert any(name.startswith("libffi.so") for name in _needed_by(_ctypes.__file__))
    broken = tmp_path / "broken.so"
    broken.write_bytes(Path(_ctypes.__file__).read_bytes()[:100])
    assert _needed_by(str(broken)) == _needed_by(__file__) == _needed_by(str(tmp_path / "none.so")) == []


def test_the_list_is_kept_until_something_is_installed(kept_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = []
    monkeypatch.setattr(names, "_looked_up", lambda readable: looked_up.append(1) or ["/one"])
    monkeypatch.setattr(names, "_mark_of", lambda readable: "as it was")
    for _ in range(2):
        names._named.cache_clear()
        assert named().names == ("/one",)
    assert len(looked_up) == 1
    monkeypatch.setattr(names, "_mark_of", lambda readable: "something new")
    names._named.cache_clear()
    assert named().names == ("/one",)
    assert len(looked_up) == 2
    (kept_here / "names.json").write_text("[[[")
    names._named.cache_clear()
    assert named().names == ("/one",)


# Read before


def in_memory(path: Path) -> float:
    """How much of it is; some kernels take a page now and then though memory is not short."""
    with path.open("rb") as file:
        share = share_in_memory(file.fileno())
    return pytest.skip("this kernel does not tell what is in memory") if share is None else share


@pytest.fixture
def forgotten(tmp_path: Path) -> list[Path]:
    """Files of which nothing is in memory."""
    paths = [tmp_path / name for name in ("small.py", "large.so")]
    for path, size in zip(paths, (10_000, 3 * 2**20), strict=True):
        path.write_bytes(os.urandom(size))
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if max(map(in_memory, paths)) > 0.1:
        pytest.skip("this file system keeps all that it has in memory")
    return paths


def test_reading_ahead_has_every_byte_in_memory(forgotten: list[Path]) -> None:
    read_ahead([str(path) for path in (*forgotten, forgotten[0].parent, Path("/nowhere"), Path("/dev/urandom"))])
    assert min(map(in_memory, forgotten)) > 0.6


def test_the_day_of_a_reading_is_noted_before_anybody_else_can_be_the_first(forgotten: list[Path]) -> None:
    now = time.time()
    for path in forgotten:
        os.utime(path, (now - 2 * DAY, now - 3 * DAY))
    paths = [str(path) for path in (*forgotten, forgotten[0].parent)]
    oldest = read_ahead(paths)
    noted = [os.stat(path).st_atime for path in paths]  # noqa: PTH116
    if max(noted) < now - DAY:
        assert oldest == math.inf
        pytest.skip("this file system notes no reading")
    assert oldest == min(noted) > now - 60


def test_that_a_link_was_followed_is_noted_as_well_and_its_day_counts(tmp_path: Path) -> None:
    """Whoever follows a link first on a day leaves a trace in the link, whatever the file's own note is."""
    now, file, link = time.time(), tmp_path / "file", tmp_path / "link"
    file.write_text("text")
    link.symlink_to(file)
    os.utime(file, (now + 100, now))
    os.utime(link, (now + 50, now), follow_symlinks=False)
    assert now + 40 < read_ahead([str(link)]) < now + 60


@pytest.fixture
def readings(kept_here: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each time that all was read; the kernel takes nothing back meanwhile."""
    made: list[int] = []
    monkeypatch.setattr(names, "read_ahead", lambda paths: made.append(len(paths)) or math.inf)
    monkeypatch.setattr(names, "_given_back", lambda: "as at the start")
    monkeypatch.setattr(names, "AGAIN_AFTER", 0.0)
    return made


def by_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_last_reading", {})
    have_been_read()


def test_what_was_read_counts_for_this_run_and_the_next(readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    have_been_read()
    have_been_read()
    by_another_run(monkeypatch)
    assert len(readings) == 1


def test_it_is_read_again_when_the_kernel_gave_memory_back(
    readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    have_been_read()
    monkeypatch.setattr(names, "_given_back", lambda: "less")
    have_been_read()
    assert len(readings) == 2
    monkeypatch.setattr(names, "_given_back", lambda: "still less")
    by_another_run(monkeypatch)
    assert len(readings) == 3
    monkeypatch.setattr(names, "_given_back", lambda: "and less")
    monkeypatch.setattr(names, "AGAIN_AFTER", 60.0)
    have_been_read()
    assert len(readings) == 3


def test_what_may_be_named_is_looked_up_once_a_minute_and_while_something_is_new(
    readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    few, more = names.named(), names.Named((*names.named().names, "/new"), ())
    monkeypatch.setattr(names, "named", lambda: looked.append(1) or few)
    monkeypatch.setattr(names, "AGAIN_AFTER", 60.0)
    have_been_read()
    have_been_read()
    assert (len(looked), len(readings)) == (2, 1)  # to count them, and to read them
    monkeypatch.setattr(names, "named", lambda: looked.append(1) or more)
    names._last_reading.update(looked=-math.inf)  # a minute later
    have_been_read()
    have_been_read()
    assert (len(looked), len(readings)) == (4, 1)  # the last reading is of this minute, so the next looks as well
    names._last_reading.update(on=-math.inf)
    have_been_read()
    have_been_read()
    assert (len(looked), len(readings)) == (6, 2)


def test_where_nobody_tells_what_was_given_back_each_run_reads(
    readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "_given_back", lambda: "")
    for runs in (1, 2):
        by_another_run(monkeypatch)
        assert len(readings) == runs


def test_it_is_read_again_when_a_reading_was_noted_a_day_ago(
    readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "read_ahead", lambda paths: readings.append(1) or time.time() - DAY)
    have_been_read()
    have_been_read()
    by_another_run(monkeypatch)
    assert len(readings) == 3


# Nothing else is named


BEGIN = """
import ctypes, mmap, os, signal, threading
from autograder.sandbox.inside.kernel import naming, seccomp
names = naming.seal(["/", "/usr", "/usr/lib", {file!r}, {folder!r}], [("/lib", "/usr/lib")])
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which none but root may put a filter on
seccomp.apply(names=names)
def refused(result):
    return result in (-1, 2**64 - 1) and ctypes.get_errno() == 1
"""


def held(code: str, file: Path) -> str:
    """What that prints in a process that may name the system's libraries, a file and its folder."""
    source = textwrap.dedent(BEGIN.format(file=str(file), folder=str(file.parent))) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=KIT)
    return done.stdout.strip() if done.returncode == 0 else f"{done.returncode}: {done.stderr.strip()[-300:]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "named.txt").write_text("named")
    (tmp_path / "other.txt").write_text("other")
    return tmp_path / "named.txt"


@has_seccomp
def test_what_is_named_is_found_however_it_is_spelt(file: Path) -> None:
    code = f"""
        folder = {str(file.parent)!r}
        print(open(folder + "/named.txt").read())
        print(open(folder + "/./../" + os.path.basename(folder) + "//named.txt").read())
        os.chdir(folder)
        print(open("named.txt").read(), os.stat("/lib").st_ino == os.stat("/usr/lib").st_ino, os.fstat(0).st_size >= 0)
        print(os.path.exists("named.txt"), os.access("named.txt", os.R_OK))
    """
    assert held(code, file).split() == ["named", "named", "named", "True", "True", "True", "True"]


@has_seccomp
def test_what_is_not_named_is_not_there_and_is_not_written(file: Path) -> None:
    code = f"""
        def said(attempt):
            try:
                attempt()
            except OSError as error:
                return type(error).__name__
        other = {str(file.parent / "other.txt")!r}
        print(said(lambda: open(other)), said(lambda: os.stat(other)), said(lambda: open(other, "a")))
        print(said(lambda: os.readlink(other)), said(lambda: os.stat("nowhere")))
        print(said(lambda: os.stat("")), said(lambda: os.stat("/proc/self/mem")))
    """
    said = held(code, file).split()
    assert said == ["FileNotFoundError"] * 2 + ["PermissionError"] + ["FileNotFoundError"] * 4


@has_seccomp
def test_the_region_of_names_cannot_be_changed_by_any_call(file: Path) -> None:
    code = """
        start, page = naming.START, mmap.PAGESIZE
        print(refused(libc.mprotect(ctypes.c_void_p(start), page, 3)))
        print(refused(libc.munmap(ctypes.c_void_p(start), page)))
        print(refused(libc.mmap(ctypes.c_void_p(start), page, 3, 0x32, -1, 0)))
        libc.mremap.restype = ctypes.c_void_p
        elsewhere = libc.mmap(None, page, 3, 0x22, -1, 0)
        print(refused(libc.mremap(ctypes.c_void_p(elsewhere), page, page, 3, ctypes.c_void_p(start))))
        print(refused(libc.mremap(ctypes.c_void_p(start), page, page, 3, ctypes.c_void_p(elsewhere))))
        print(refused(libc.madvise(ctypes.c_void_p(start), page, 4)))
        print(bytes((ctypes.c_char * 1).from_address(start + naming.SLOT)) == b"/")
    """
    assert held(code, file).split() == ["True"] * 7


@has_seccomp
def test_without_the_handler_a_path_ends_the_process(file: Path) -> None:
    assert held("signal.signal(signal.SIGSYS, signal.SIG_DFL); os.stat('/usr')", file).startswith("-31:")


@has_seccomp
def test_threads_without_end_need_no_path_for_their_memory(file: Path) -> None:
    """The C library asks for the number of processors when the tenth thread needs memory; and so would the handler."""
    code = """
        gate = threading.Barrier(65)
        def body():
            kept = bytearray(1000)
            gate.wait()
        threads = [threading.Thread(target=body) for _ in range(64)]
        for thread in threads:
            thread.start()
        gate.wait()
        print("fine")
    """
    assert held(code, file) == "fine"


@has_seccomp
def test_threads_that_load_libraries_at_once_do_not_wait_for_each_other_without_end() -> None:
    """Each opens files while it holds the loader's lock; so of each two, one would wait with Python's in its hands."""
    source = """
        import ctypes, importlib, os, pathlib, sys, threading
        def load(files):
            for file in files:
                with contextlib.suppress(ImportError, OSError):
                    importlib.import_module(file.name.partition(".")[0])
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(file))
        def work():
            folder, = [pathlib.Path(path) for path in sys.path if path.endswith("lib-dynload")]
            files = [folder / name for name in sorted(os.listdir(folder))]
            threads = [threading.Thread(target=load, args=(files[n::4],)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return len(files)
    """
    probes = "def call(student, inputs, params):\n    return {}, {'libraries': student.work()}\n"
    program = Program("homework", "import contextlib\n" + textwrap.dedent(source), {}, probes)
    request = Request("item", "work", "call", {}, safetensors.numpy.save({}), 60.0)
    with Sandbox(strangers=True) as sandbox:
        (outcome,) = sandbox.run(program, [request], load_timeout=60.0)
    assert outcome.observation is not None, outcome
    assert outcome.observation.facts["libraries"] > 10

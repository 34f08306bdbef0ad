"""The attack corpus: submissions that try what none should, graded for real, with witnesses outside.

`corpus` holds the attacks, each with what it may earn at `strict`; all are graded on ITEMS. One of each kind is tried
at process level too (`isolation="none"`), where only a process boundary and deadlines hold. There most succeed: so
attacks are real, and the witnesses see them. The short run has one of each kind, the long one all.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import platform
import re
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import einops
import pytest
import torch
from all_assignments import fixtures_of
from corpus import ATTACKS, ITEMS, SHORT, Attack
from graded_folder import without_times
from hand_ins import put_all, read_one
from places import KIT
from processes import PATIENCE, descendants, parents, soon
from sample_reports import write_report

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
from autograder.pages.student_page import feedback_page
from autograder.sandbox.interpreter import packages
from autograder.sandbox.isolation.kernel import PR_SET_CHILD_SUBREAPER, prctl
from autograder.sandbox.sandbox import Isolation, Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.report import Report, to_json

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox has layers on Linux only")

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
FIXTURES = fixtures_of(ASSIGNMENT.name)
SOLUTION = solution_source(ASSIGNMENT)
NEIGHBOURS_ITEMS = ("kl-values", "deltas-centered")  # one wrong, one right, both in no time
NEIGHBOURS_MISTAKE = """
def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return (0.5 * log_ratio**2).sum(dim=-1).mean()
"""
ALL_THE_NEIGHBOUR = (*NEIGHBOURS_ITEMS, "loop-seed")  # and a run whose sampling shows any seed that was left behind
SECRET = "canary-7c1f-of-another-student"
MARK = f"attack-{os.getpid()}"
REST = 4  # attacks after which a neighbour is graded at strict: it takes as long as an attack
SLACK = PATIENCE  # seconds that starting workers may take besides
QUIET: dict[str, Any] = {"capture_output": True, "text": True}
ALL_WITNESSES = frozenset({"secret", "hidden inputs", "file", "tcp", "unix", "neighbour", "left"})


# What the attacks aim at, and who sees whether they hit


def reporting(case: Case) -> list[str]:
    """What a report would hold that told the case's first inputs, as numbers or as a shape."""
    values = case.inputs["rewards"].reshape(-1)[:3].tolist()
    return [", ".join(map(str, values)), ", ".join(str(int(1000 * abs(value))) for value in values)]


HIDDEN_INPUTS = [
    text for case in FIXTURES.of_item("deltas-centered") if case.visibility == "hidden" for text in reporting(case)
]


def public_answers() -> list[tuple[object, object]]:
    return [
        (case.inputs["rewards"].tolist(), one.array.tolist())
        for case in FIXTURES.of_item("deltas-centered")
        for one in case.expected
        if case.visibility == "public" and one.kind == "value" and one.array is not None
    ]


class Folder:
    """Files that no attack may read or change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.secret = path / "grace" / "policy_gradient.py"
        self.target = path / "heidi" / "policy_gradient.py"
        self.restore()

    def restore(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        for file, text in ((self.secret, SECRET), (self.target, "mine")):
            file.parent.mkdir(parents=True)
            file.write_text(text)
        self._before = self._seen()

    def changed(self) -> bool:
        return self._seen() != self._before

    def _seen(self) -> list[object]:
        inside = sorted(self.path.rglob("*"))
        packages = Path(torch.__file__).parent.parent
        outside = [packages / f"{MARK}.pth", Path("/dev/shm") / MARK]
        compiled = Path(einops.__cached__)
        return [
            *((path, path.lstat().st_mode, path.lstat().st_mtime_ns, content(path)) for path in inside),
            [path.exists() for path in outside],
            compiled.exists() and compiled.read_bytes()[:16],
        ]


def content(path: Path) -> object:
    if path.is_symlink() or not path.is_file():
        return None
    return os.access(path, os.R_OK) and path.read_bytes(), os.listxattr(path)


class Listeners:
    """Two sockets that nobody should speak to."""

    def __init__(self) -> None:
        self.tcp, self.unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
        self.unix_name = f"\0{MARK}-{id(self)}"
        self.unix.bind(self.unix_name)
        self.unix.listen()
        for each in (self.tcp, self.unix):
            each.setblocking(False)

    def contacted(self) -> set[str]:
        found = set()
        for name, listener in (("tcp", self.tcp), ("unix", self.unix)):
            with contextlib.suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close()
                    found.add(name)
        return found

    def close(self) -> None:
        self.tcp.close()
        self.unix.close()


class Victim:
    """A process that minds its own business: it says again what it is told, which no killed one does."""

    def __init__(self) -> None:
        self.restore()

    def restore(self) -> None:
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._before = self._seen()

    def changed(self) -> bool:
        return self._seen() != self._before

    def _seen(self) -> object:
        pid, told, says = self.process.pid, self.process.stdin, self.process.stdout
        assert told is not None
        assert says is not None
        with contextlib.suppress(BrokenPipeError):
            told.write(b".")
        if not select.select([says], [], [], PATIENCE)[0] or not says.read(1):
            return None
        files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        return os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), files

    def close(self) -> None:
        self.process.kill()
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            pipe.close()
        self.process.wait()


class Arena:
    """A sandbox, what stands around it, and a neighbour's submission that is graded after attacks."""

    def __init__(self, isolation: Isolation, path: Path) -> None:
        self.isolation = isolation
        self.folder, self.listeners, self.victim = Folder(path), Listeners(), Victim()
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a dead worker leaves is ours, and no other test's that runs besides
        self.strangers = processes_like_workers()
        self.sandbox = Sandbox(isolation=isolation)
        self.clean = self.grade_neighbour()
        assert [item.mistakes for item in self.clean.items] == [("k2-estimate",), ()]
        self.wholly_clean = self.grade_neighbour(ALL_THE_NEIGHBOUR)
        self.held = held()
        self.attacks = 0

    def grade(self, attack: Attack) -> Report:
        self.attacks += 1
        grader = Grader.of(ASSIGNMENT, FIXTURES)
        items = tuple(replace(i, timeout=attack.seconds) if i.id == ITEMS[0] else i for i in ASSIGNMENT.items)
        load_timeout = attack.seconds if "import" in attack.name else ASSIGNMENT.load_timeout
        assignment = replace(ASSIGNMENT, items=items, load_timeout=load_timeout)
        given = {**grader.given, "targets": self._targets()}
        source = f"{SOLUTION}\n\n{attack.source}"
        submission = Submission("mallory", "mallory/policy_gradient.py", "0" * 64, source, "", "")
        grader = replace(grader, assignment=assignment, given=given)
        return grader.grade(submission, self.sandbox, items=[assignment.item(name) for name in attack.items])

    def grade_neighbour(self, items: Sequence[str] = NEIGHBOURS_ITEMS) -> Report:
        """An honest submission with a known mistake in it: to find words for another takes longer than all else."""
        source = f"{SOLUTION}\n\n{NEIGHBOURS_MISTAKE}"
        submission = Submission("ada", "ada/policy_gradient.py", "1" * 64, source, "", "")
        asked = [ASSIGNMENT.item(name) for name in items]
        return without_times(Grader.of(ASSIGNMENT, FIXTURES).grade(submission, self.sandbox, items=asked))

    def noticed(self, report: Report) -> set[str]:
        """The witnesses that something happened; what it changed is put right."""
        told = json.dumps(to_json(report), ensure_ascii=False) + feedback_page(report)
        found = self.listeners.contacted()
        found |= {"secret"} if SECRET in told else set()
        found |= {"hidden inputs"} if any(text in told for text in HIDDEN_INPUTS) else set()
        found |= {"left"} if not soon(self._is_alone) else set()
        if self.folder.changed():
            found.add("file")
            self.folder.restore()
        if self.victim.changed():
            found.add("neighbour")
            self.victim.close()
            self.victim.restore()
        return found

    def close(self) -> None:
        self.sandbox.close()
        self.listeners.close()
        self.victim.close()

    def _is_alone(self) -> bool:
        """Whether nothing is left but the server, and in namespaces the process that waits for it."""
        ours, parent = processes_like_workers(), parents()
        waiting = {pid for pid in ours if parent.get(pid) == os.getpid()}
        first = {pid for pid in ours if parent.get(pid) in waiting and is_first_of_a_namespace(pid)}
        return ours <= self.strangers | waiting | first

    def _targets(self) -> str:
        targets = {
            "FOLDER": str(self.folder.path),
            "SECRET_FILE": str(self.folder.secret),
            "TARGET_FILE": str(self.folder.target),
            "TCP_PORT": self.listeners.tcp.getsockname()[1],
            "UNIX_NAME": self.listeners.unix_name,
            "VICTIM": self.victim.process.pid,
            "GRADER": os.getpid(),
            "KIT": str(KIT),
            "HOME": str(Path.home()),
            "MARK": MARK,
            "PUBLIC": public_answers(),
        }
        return "\n".join(f"{name} = {value!r}" for name, value in targets.items())


def processes_like_workers() -> set[int]:
    """Every process of ours that is, or was forked from, a server or a worker; whoever runs besides us has others."""
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"worker.main_on_stdio()" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def is_first_of_a_namespace(pid: int) -> bool:
    """Whether it is process 1 of a namespace of processes below ours: a server in namespaces."""
    with contextlib.suppress(OSError):
        return bool(re.search(r"^NSpid:\s\d+\s1$", Path(f"/proc/{pid}/status").read_text(errors="replace"), re.M))
    return False


def held() -> tuple[int, int]:
    """Descriptors and threads of the grader."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def resident() -> int:
    """Bytes of memory that the grader holds, without what nothing refers to any more."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed goes back to the system
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    try:
        made = Arena(request.param, tmp_path_factory.mktemp("class") / "submissions")
    except KitError as error:
        pytest.skip(str(error))
    yield made
    made.close()
    assert soon(lambda: processes_like_workers() <= made.strangers)


WALLS = (  # one attack at each wall: tried as other users and in a container too
    "another_submission_read",  # Landlock, reading
    "capabilities_regained",  # identity
    "exit_in_a_call",  # a process of its own
    "file_overwritten",  # Landlock, writing
    "fork_bomb",  # seccomp: processes
    "forged_observation",  # numbered questions
    "infinite_loop",  # deadlines
    "gigabyte_to_stdout",  # budgets
    "memory_by_torch",  # rlimits
    "neighbour_killed",  # seccomp: signals
    "own_limits_raised",  # rlimits, kept
    "processes_listed",  # namespaces or Landlock
    "secret_by_tcp",  # seccomp: network
)

OF_EACH_KIND = {*WALLS, "refused_lines", *(attack.name for attack in ATTACKS if attack.process)}

at_strict = pytest.mark.parametrize("arena", ["strict"], indirect=True)
at_process_level = pytest.mark.parametrize("arena", ["none"], indirect=True)


def each(attacks: Sequence[Attack], short: Collection[str]) -> pytest.MarkDecorator:
    """The attacks that there are on this machine; all are long but those in `short`."""
    chosen = [
        pytest.param(attack, id=attack.name, marks=[] if attack.name in short else [pytest.mark.long])
        for attack in attacks
        if attack.machine in ("", platform.machine())
    ]
    return pytest.mark.parametrize("attack", chosen)


def deserved(report: Report) -> tuple[float | None, ...]:
    """The share of an item's points that its passed cases are; an answer of zeros is right of a group of one."""
    passed = [sum(case.verdict == "passed" for case in item.cases) for item in report.items]
    shares = [round(3 * count / max(1, len(item.cases)), 2) for count, item in zip(passed, report.items, strict=True)]
    return tuple(
        None if item.verdict == "not_graded" else share for item, share in zip(report.items, shares, strict=True)
    )


def graded(arena: Arena, attack: Attack, verdicts: str) -> tuple[Report, set[str]]:
    """The report of an attack that gets these verdicts in time and leaves nothing open, and who noticed it."""
    started = time.monotonic()
    report = arena.grade(attack)
    seconds, noticed = time.monotonic() - started, arena.noticed(report)
    assert seconds < attack.seconds + SLACK
    assert re.fullmatch(verdicts, " ".join(item.verdict for item in report.items)), report
    assert tuple(item.points for item in report.items) == (attack.points or deserved(report))
    assert all(now <= before for now, before in zip(held(), arena.held, strict=True))
    return report, noticed


# The corpus


def test_attacks_have_names_and_witnesses_of_their_own_and_items_of_three_points() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert {witness for attack in ATTACKS for witness in attack.does} <= ALL_WITNESSES
    assert [ASSIGNMENT.item(name).points for name in ITEMS] == [3, 3]
    hidden = [case for case in FIXTURES.of_item("deltas-centered") if case.visibility == "hidden"]
    assert len(HIDDEN_INPUTS) == 2 * len(hidden) > 0


@at_strict
@each(ATTACKS, OF_EACH_KIND)
def test_attack_at_strict_gets_nothing(arena: Arena, attack: Attack, tmp_path: Path) -> None:
    report, noticed = graded(arena, attack, attack.verdicts)
    said = f"{report.cause}\n{report.items[0].message}"
    assert re.search(attack.says, said, re.DOTALL), said
    assert noticed == set()
    assert arena.attacks % REST or arena.grade_neighbour() == arena.clean
    harmless_to_read(report, tmp_path)


@at_strict
def test_training_neighbour_is_graded_as_before_all_attacks(arena: Arena) -> None:
    assert arena.grade_neighbour(ALL_THE_NEIGHBOUR) == arena.wholly_clean


@at_process_level
@each([attack for attack in ATTACKS if attack.process], short=WALLS)
def test_attack_at_process_level_gets_what_is_written(arena: Arena, attack: Attack) -> None:
    assert graded(arena, attack, attack.process)[1] == attack.does
    assert arena.grade_neighbour() == arena.clean


def harmless_to_read(report: Report, folder: Path) -> None:
    """Nothing in report or page is more than text, and none of it is what a submission printed."""
    page = feedback_page(report)
    write_report(report, folder / "report.json")
    messages = [item.message for item in report.items] + [case.message for item in report.items for case in item.cases]
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]", "".join(messages)
    )
    assert not re.search(r"<script>alert|<img src=x", page)
    assert f"{MARK}: 100 passed" not in page + "".join(messages)
    assert len(json.dumps(to_json(report))) < 100_000


# Files around the submission


WRONG = (
    "torch",
    "numpy/__init__",
    "einops/__init__",
    "sorting_task",
    "probes",
    "autograder/__init__",
    "safetensors/torch",
)
AROUND = {
    **dict.fromkeys(("conftest.py", "sitecustomize.py", "usercustomize.py"), "import os\nos._exit(0)\n"),
    "evil.pth": "import os; os._exit(0)\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    **{f"{module}.py": f"raise RuntimeError('the wrong {module}')\n" for module in WRONG},
    "__pycache__/policy_gradient.cpython-311.pyc": "poison",
    "items.toml": "points = 1000\n",
}


@at_strict
def test_files_beside_the_submission_change_nothing(arena: Arena, tmp_path: Path) -> None:
    submission = read_one(put_all(tmp_path / "mallory", {**AROUND, "policy_gradient.py": SOLUTION}))
    items = [ASSIGNMENT.item(name) for name in NEIGHBOURS_ITEMS]
    report = Grader.of(ASSIGNMENT, FIXTURES).grade(submission, arena.sandbox, items=items)
    assert {item.verdict for item in report.items} == {"passed"}
    assert arena.grade_neighbour() == arena.clean


# The grader in the long run


WEARING = (
    *("flood_of_frames", "fat_answers", "fat_facts", "exception_whose_text_is_huge", "result_too_large"),
    "gigabyte_to_stdout",
)


@pytest.mark.long
@at_strict
def test_repeated_attacks_leave_the_grader_small(arena: Arena) -> None:
    attacks = [replace(attack, seconds=SHORT) for attack in ATTACKS if attack.name in WEARING]
    for attack in attacks * 2:  # after which the allocator has what it keeps for reuse
        arena.grade(attack)
    before = resident(), held()
    for attack in attacks:
        arena.grade(attack)
    assert resident() < before[0] + 32 * 2**20
    assert all(now <= then for now, then in zip(held(), before[1], strict=True))


# As another user, and in a container


USERS = {
    "nobody": ["--reuid=65534", "--regid=65534", "--clear-groups"],
    "root without any capability": ["--inh-caps=-all", "--bounding-set=-all"],
    "root whose workers are somebody else": ["--clear-groups"],
}
REACH = """
import os, subprocess, sys
import einops, pytest, safetensors, torch
os.listdir(sys.argv[1])
subprocess.run([sys.executable, "-c", "import json, ssl"], check=True)
if "somebody else" in sys.argv[2]:
    from autograder.sandbox.isolation.kernel import others_reach
    from autograder.sandbox.interpreter import packages, readable_paths
    assert others_reach(tuple(readable_paths(packages()))), f"others may not enter {sys.base_prefix}"
"""


def command_of(user: str, environment: dict[str, str], *more: str) -> list[str]:
    """How that user runs Python; our own may be out of reach, then the system's does with our packages.

    more   other arguments of setpriv
    """
    setpriv = shutil.which("setpriv") or pytest.skip("setpriv, which changes the user, is not here")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    reasons = []
    for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin:/bin")):
        if python is not None:
            command = [setpriv, *USERS[user], *more, python]
            reached = subprocess.run([*command, "-c", REACH, str(KIT), user], env=environment, cwd=KIT, **QUIET)
            if reached.returncode == 0:
                return command
            reasons.append(f"{python}: {(reached.stderr.strip().splitlines() or ['?'])[-1]}")
    return pytest.skip(f"no Python with our packages works for {user}: {'; '.join(reasons)}")


# What Docker leaves to root, and a third of what its seccomp profile refuses without CAP_SYS_ADMIN: new namespaces.
DOCKERS = (
    "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,"
    "+sys_chroot,+kill,+audit_write"
)
CONTAINED = """
import os, platform, struct, ctypes, sys
from autograder.sandbox.isolation import seccomp
from autograder.sandbox.isolation.kernel import prctl
from autograder.sandbox.sandbox import probe
column, architecture = seccomp.MACHINES[platform.machine()]
# unshare, setns, mount, umount2, pivot_root, open_tree, move_mount, fsopen, mount_setattr
refused = [(272, 97), (308, 268), (165, 40), (166, 39), (155, 41), (428,) * 2, (429,) * 2, (430,) * 2, (442,) * 2]
program = [seccomp._load(0)]
for numbers in refused:
    program += [(0x15, 0, 1, numbers[column]), seccomp._return(0x00050001)]
program += [(0x15, 0, 1, seccomp.FALLS_BACK["clone3"][column]), seccomp._return(0x00050026)]
program += seccomp._judge(seccomp.JUDGED["clone"][column], 0, seccomp._refuse_if_any(0x7E020000))
program += [seccomp._return(0x7FFF0000)]
packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
buffer = ctypes.create_string_buffer(packed, len(packed))
given = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
prctl(38, 1)
prctl(22, 2, ctypes.create_string_buffer(given, len(given)))
found = probe()
missing = {layer for layer, why in found.items() if why}
# The expected difference to a machine of one's own: no namespaces; all else holds.
assert missing == {"namespaces"}, found
assert "not permitted" in found["namespaces"], found
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("user", "contained"), [*((user, False) for user in [*USERS][:2]), ("nobody", True), ([*USERS][2], True)]
)
def test_every_wall_holds_for_another_user_and_in_a_container(user: str, contained: bool) -> None:
    """In the container with Docker's capabilities and without new namespaces."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user, or takes capabilities from root")
    chosen = [f"{__file__}::test_attack_at_strict_gets_nothing[{name}-strict]" for name in WALLS]
    chosen.append(f"{__file__}::test_training_neighbour_is_graded_as_before_all_attacks[strict]")
    with tempfile.TemporaryDirectory() as home:
        if user == "nobody":
            os.chown(home, 65534, 65534)
        paths = os.pathsep.join(packages())
        environment = {**os.environ, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths}
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={home}/pytest", *chosen]
        limits = ("--inh-caps=-all", f"--bounding-set={DOCKERS}") if contained else ()
        start = ("-c", CONTAINED) if contained else ("-m", "pytest")
        command = [*command_of(user, environment, *limits), *start, *options]
        done = subprocess.run(command, env=environment, cwd=KIT, **QUIET)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) == len(chosen)
    assert "skipped" not in done.stdout

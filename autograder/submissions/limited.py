"""Reading what was handed in, in a process that may take so much and no more: zips, notebooks and code are hostile.

A lean Python with nothing but the reader in it reads one submission at a time, and answers in JSON. What exceeds its
limits is the student's problem; whatever else keeps it from answering is the grader's fault. To start one takes as long
as to read some fifty submissions, so it goes on with the next one, unless it has grown.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from autograder.submissions import reading
from autograder.submissions.notebook import WrittenCell
from autograder.submissions.reading import SEE_TO_IT, nothing_read
from autograder.submissions.submission import MIB, Candidate, Function, Submission, UnreadCell

# Of processor time. Files of honest work that pass the counts (entries, bytes looked into, characters of code) take a
# tenth of it; only text made to take the parser long comes near, so that it is the student's. Else it were a fault.
SECONDS = 5
MEMORY = 1024 * MIB
GROWN = 128 * MIB  # from here on the next submission would have less
PATIENCE = 60  # seconds of the clock on the wall, for a busy machine or a slow disk
MOST_ANSWERED = 64 * MIB
HELD = sys.platform == "linux"  # elsewhere are students' own machines, and no limits of memory
ADVICE = "hand in {}.py, or the notebook with all outputs cleared, and nothing else."
OUT_OF_MEMORY, TOO_LITTLE_ALLOWED = 3, 4  # exit statuses
START = """
import sys
sys.path.insert(0, sys.argv[1])
from autograder.submissions import limited
limited.serve(*map(int, sys.argv[2:]))
"""


def read(candidate: Candidate, module: str, untouched: str = "", of_course: Sequence[str] = ()) -> Submission:
    """What `reading.read` says of a candidate within the limits, and otherwise why nothing was read."""
    found, problem, fault = _asked("read", candidate, module, untouched, of_course)
    if found is None:
        return replace(nothing_read(candidate, problem, fault), notes=candidate.notes)
    found["notes"], found["lines"] = (*candidate.notes, *found["notes"]), tuple(found["lines"])
    found["defines"] = tuple(found["defines"])
    found["cells"] = tuple((line, cell) for line, cell in found["cells"])
    found["unread_cells"] = tuple(UnreadCell(**cell) for cell in found["unread_cells"])
    for name, function in found["functions"].items():
        found["functions"][name] = Function(**function | {"docstring": tuple(function["docstring"])})
    return Submission(**found)


def written_cells(candidate: Candidate, module: str, functions: Sequence[str] = ()) -> list[WrittenCell]:
    """What `reading.written_cells` says of a candidate; nothing where that exceeds the limits."""
    return [WrittenCell(**cell) for cell in _asked("written_cells", candidate, module, functions)[0] or ()]


def _asked(task: str, candidate: Candidate, module: str, *told: str | Sequence[str]) -> tuple[Any, str, str]:
    """What a reader answers, else the problem or the fault that kept it from answering, as the end of a sentence."""
    paths = [str(path.absolute()) if path else None for path in (candidate.path, candidate.beside)]
    names = [candidate.student, candidate.shown, candidate.fault]
    question = json.dumps([task, *paths, *names, module, *told]).encode() + b"\n"
    advice = ADVICE.format(module)
    try:
        answer, status = _answered(question) if HELD else (_answer(question), 0)
        if status == 0:
            return json.loads(answer), "", ""
    except (OSError, MemoryError) as error:
        return None, "", f"could not be read ({getattr(error, 'strerror', None) or type(error).__name__}): {SEE_TO_IT}"
    if len(answer) > MOST_ANSWERED:
        return None, f"holds more than {MOST_ANSWERED // MIB} MiB of text: {advice}", ""
    if status == -signal.SIGPROF:
        return None, f"takes more than {SECONDS} s to read: {advice}", ""
    if status == OUT_OF_MEMORY:
        return None, f"takes more than {MEMORY // MIB} MiB of memory to read: {advice}", ""
    if status == TOO_LITTLE_ALLOWED:
        return None, "", f"could not be read (less than {MEMORY // MIB} MiB of memory are allowed here): {SEE_TO_IT}"
    why = signal.Signals(-status).name if status < 0 else f"status {status}"
    return None, "", f"could not be read (the reader ended with {why}): {SEE_TO_IT}"


idle: list[subprocess.Popen[bytes]] = []


def _answered(question: bytes) -> tuple[bytes, int]:
    """What a reader answers, and 0, or the status that it ended with. Raises OSError where none can be started."""
    while True:
        try:
            reader = idle.pop()
        except IndexError:
            reader = _started()
        assert reader.stdin is not None
        assert reader.stdout is not None
        answer = b""
        try:
            with contextlib.suppress(BrokenPipeError):  # its status says why
                reader.stdin.write(question)
                reader.stdin.flush()
                answer = reader.stdout.readline(MOST_ANSWERED + 1)
        except BaseException:
            _end(reader, kill=True)
            raise
        if answer.endswith(b"\n"):
            idle.append(reader)
            return answer, 0
        if status := _end(reader, kill=len(answer) > MOST_ANSWERED):  # 0: it had grown, and ended
            return answer, status


def _started() -> subprocess.Popen[bytes]:
    told = [str(Path(__file__).parents[2]), str(SECONDS), str(MEMORY)]
    command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", START, *told]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, cwd="/", start_new_session=True)


def _end(reader: subprocess.Popen[bytes], *, kill: bool) -> int:
    if kill:
        reader.kill()
    with contextlib.suppress(BrokenPipeError), reader:
        pass  # which closes its pipes, and waits for it
    return reader.wait()


@atexit.register
def end_all() -> None:
    """End all readers that nobody asks anything."""
    while idle:
        _end(idle.pop(), kill=True)


def serve(seconds: int, memory: int) -> None:
    """Answer each line of the standard input with a line, within the limits."""
    import resource  # which Windows lacks

    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY and hard < most:
            os._exit(TOO_LITTLE_ALLOWED)
        resource.setrlimit(limit, (most, most))
    for ends in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(ends, signal.SIG_DFL)
    while _most_held() < GROWN and (question := sys.stdin.buffer.readline()):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(PATIENCE)
        try:
            answer = _answer(question)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _most_held() -> int:
    """The most bytes that this process has held; `getrusage` would begin with what the grader held at its start."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


def _answer(question: bytes) -> bytes:
    task, path, beside, student, shown, fault, module, *told = json.loads(question)
    asked = Candidate(student, Path(path), shown, beside and Path(beside), fault=fault)
    if task == "read":
        return json.dumps(asdict(reading.read(asked, module, *told))).encode()
    return json.dumps([asdict(cell) for cell in reading.written_cells(asked, module, *told)]).encode()

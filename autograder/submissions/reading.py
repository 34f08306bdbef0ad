"""A Candidate → its Submission: the Python text that is graded, or why there is none.

Nothing of a submission is executed, imported or written to disk here. What a student got wrong is a value,
`Submission.problem`; so is what the grader could not read, `Submission.fault`.

Zips, notebooks and code are hostile, so `read_limited` asks a process that may take so much time and memory and no
more: a lean Python with nothing but this reader in it, which reads one submission at a time and answers in JSON. What
exceeds its limits is the student's problem; whatever else keeps it from answering is the grader's fault. To start one
takes as long as to read some fifty submissions, so it goes on with the next one, unless it has grown.
"""

from __future__ import annotations

import atexit
import codecs
import contextlib
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from autograder.submissions.handed_in import HandedFile, from_disk, from_files, from_folder, from_zip, packed, refused
from autograder.submissions.names import defined, defines_one, is_archive, kind_of, suffix_of
from autograder.submissions.notebook import MAX_CODE, Text, WrittenCell, cells_in, notebook_text, script_text
from autograder.submissions.submission import (
    CAPS,
    MIB,
    UNPARSABLE,
    Candidate,
    Function,
    Submission,
    UnreadCell,
    functions_of,
    outline,
    parsed,
    quoted,
)

MAX_NOTES = 20
SEE_TO_IT = "see to it and grade it again."
NOT_BY_BYTES = ("utf-16", "utf-32", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(candidate: Candidate, module: str, untouched: str = "", of_course: Sequence[str] = ()) -> Submission:
    """Read what `candidate` holds as Python text, without limits; nothing that a student hands in makes this raise.

    module      the name to hand in under, without suffix
    untouched   text of the handout's module: it says which functions are graded, hence what to keep of a
                notebook, and whether a module that lies beside a notebook was ever edited
    of_course   the functions that are graded in any assignment: see `Submission.defines`
    """
    graded = tuple(sorted(functions_of(untouched)))
    defines: set[str] = set()
    try:
        fault = HandedFile(candidate.shown, fault=candidate.fault)
        files = [fault] if candidate.fault else _files(candidate, module, graded)
        submission = _read_file(candidate, files[0], module, graded)
        if len(files) == 2:
            of_notebook = _read_file(candidate, files[1], module, graded)
            submission = _module_or_notebook(submission, of_notebook, untouched)
        if submission.problem and of_course:  # what would have been chosen of another assignment
            files = [file for file in _files(candidate, module, of_course) if not file.problem and not file.fault]
            if files:
                digest = hashlib.sha256(files[0].data).hexdigest()
                submission = replace(submission, path=files[0].shown, sha256=digest)
        defines = defines.union(*(defined(file.data, of_course) for file in files))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        submission = _nothing_read(candidate, fault=f"could not be read ({reason}): {SEE_TO_IT}")
    notes, functions = (*candidate.notes, *submission.notes), outline(submission.source, graded)
    return replace(submission, notes=notes, defines=tuple(sorted(defines)), functions=functions)


def _nothing_read(candidate: Candidate, problem: str = "", fault: str = "") -> Submission:
    """Report that no file could be read, and why, as the end of a sentence."""
    problem, fault = (f"{quoted(candidate.shown)} {reason}" if reason else "" for reason in (problem, fault))
    return _submission(candidate, HandedFile(candidate.shown, problem=problem, fault=fault), Text())


def written_cells(candidate: Candidate, module: str, functions: Sequence[str] = ()) -> list[WrittenCell]:
    """Return the cells of a candidate's notebook as they were written; none where it has no notebook.

    functions   that are graded: they tell a notebook that was worked at from one that was handed out
    """
    with contextlib.suppress(OSError):
        for file in _files(candidate, module, functions):
            if kind_of(file.shown) == ".ipynb" and not file.problem:
                return cells_in(_decoded(file.data).source)
    return []


def _files(candidate: Candidate, module: str, functions: Sequence[str]) -> list[HandedFile]:
    """Choose the one file to grade, or a module and a notebook in this order."""
    if candidate.files:
        return from_files(candidate.files, candidate.student, module, functions)
    if stat.S_ISDIR(candidate.path.lstat().st_mode):
        return from_folder(candidate.path, candidate.shown, module, functions)
    file = from_disk(candidate.path, candidate.shown)
    kind = kind_of(candidate.shown)
    if suffix_of(candidate.shown) not in CAPS and not file.problem:
        if is_archive(candidate.shown, file.data):
            return [packed(candidate.shown)]
        if kind not in CAPS or not defines_one(file.data, functions):
            return [refused(candidate.shown, "is no .py, .ipynb or .zip file: hand in one of these.", file.data)]
    return from_zip(file, module, functions) if kind == ".zip" and not file.problem else [file]


def _read_file(candidate: Candidate, file: HandedFile, module: str, graded: tuple[str, ...]) -> Submission:
    if file.problem or file.fault:
        return _submission(candidate, file, Text())
    text = _decoded(file.data)
    if not text.problem:
        kind = kind_of(file.shown)
        if kind == ".ipynb":
            text = notebook_text(text.source, module, graded)
        elif kind == ".py" and (script := script_text(text.source, module, graded)):
            text = script
        elif not text.source.strip():
            text = Text(problem="is empty.")
        elif len(text.source) > MAX_CODE:
            text = Text(problem=f"is too large: more than {MAX_CODE // 1024} KiB of code are not graded.")
    return _submission(candidate, file, text)


def _submission(candidate: Candidate, file: HandedFile, text: Text) -> Submission:
    notes = (*([file.note] if file.note else []), *text.notes)
    if len(notes) > MAX_NOTES:
        notes = (*notes[:MAX_NOTES], f"{len(notes) - MAX_NOTES} more notes are left out here")
    problem = file.problem or (f"{quoted(file.shown)} {text.problem}" if text.problem else "")
    of_file = {"problem": problem, "fault": file.fault, "notes": notes, "functions": {}}
    return Submission(candidate.student, file.shown, hashlib.sha256(file.data).hexdigest(), **vars(text) | of_file)


def _module_or_notebook(of_module: Submission, of_notebook: Submission, untouched: str) -> Submission:
    """Choose the module, unless it cannot be parsed or was never edited, while the notebook can be and was."""
    unread = of_module.problem.removesuffix(".")
    if not unread:
        try:
            parsed(of_module.source)
        except UNPARSABLE as error:
            line = getattr(error, "lineno", None)
            unread = f"it is no Python from line {line} on" if line else "it is no Python"
    notebook_as_handed_out = bool(of_notebook.source) and not _is_edited(of_notebook.source, untouched)
    if notebook_as_handed_out:  # the module holds the work, or what cannot be read, or neither was touched
        return of_module
    if not unread and _is_edited(of_module.source, untouched):
        chosen, kind, reason = of_module, "module", "it counts before a notebook"
    elif of_notebook.problem:
        chosen, kind, reason = of_module, "module", "the notebook holds no answers"
    elif unread:
        chosen, kind, reason = of_notebook, "notebook", f"the module cannot be read: {unread}"
    else:
        chosen, kind, reason = of_notebook, "notebook", "the module is as it was handed out"
    note = f"both a module and a notebook were handed in: the {kind} was graded because {reason}"
    unread_notebook = (of_notebook.problem.removesuffix("."),) if of_notebook.problem and not of_notebook.notes else ()
    return replace(chosen, notes=(note, *unread_notebook, *chosen.notes))


def _is_edited(source: str, untouched: str) -> bool:
    """Tell whether `source` defines a function of the handout otherwise than the handout does."""
    try:
        functions = functions_of(source)
    except UNPARSABLE:
        return True
    given = functions_of(untouched)
    return not given or any(functions.get(name, body) != body for name, body in given.items())


def _decoded(data: bytes) -> Text:
    """Decode text by the rules that Python has for source: UTF-8, or what its first two lines declare."""
    if data.startswith(UTF_16):
        return Text(problem="is UTF-16 text: save it as UTF-8.")
    if (position := data.find(b"\0")) >= 0:
        return Text(problem=f"is not a text file: it holds a null byte at position {position}.")
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        encoding = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name.removesuffix("-sig")
        # What writes plain text not byte by byte is none; a LookupError is also what turns bytes into bytes.
        usable = not encoding.startswith(NOT_BY_BYTES) and "def".encode(encoding) == b"def"
    except (SyntaxError, LookupError, UnicodeError):
        encoding, usable = "utf-8", False
    if not usable:
        encoding = "utf-8"
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        position = error.start + len(data) - len(body)
        where = f"byte 0x{data[position]:02x} at position {position}"
        return Text(problem=f"is not {encoding.upper()} text: {where}. Save it as UTF-8.")
    if not usable:
        return Text(problem="declares an encoding that Python cannot read it in: save it as UTF-8, delete that line.")
    return Text(text)


# In a process with limits

# Of processor time. Files of honest work that pass the counts (entries, bytes looked into, characters of code) take a
# tenth of it; only text made to take the parser long comes near, so that it is the student's. Else it were a fault.
SECONDS = 5
MEMORY = 1024 * MIB
GROWN = 128 * MIB  # a reader that has held more ends: the next submission would have less
WAIT_SECONDS = 60  # of the clock on the wall, for a busy machine or a slow disk
MOST_ANSWERED = 64 * MIB
HAS_LIMITS = sys.platform == "linux"  # elsewhere are students' own machines, and no limits of memory
ADVICE = "hand in {}.py, or the notebook with all outputs cleared, and nothing else."
OUT_OF_MEMORY, TOO_LITTLE_ALLOWED = 3, 4  # exit statuses
START = """
import sys
sys.path.insert(0, sys.argv[1])
from autograder.submissions import reading
reading.serve(*map(int, sys.argv[2:]))
"""

idle: list[subprocess.Popen[bytes]] = []


def read_limited(candidate: Candidate, module: str, untouched: str = "", of_course: Sequence[str] = ()) -> Submission:
    """Read a candidate within the limits; else say why nothing was read."""
    answer, problem, fault = _ask("read", candidate, module, untouched, of_course)
    if answer is None:
        return replace(_nothing_read(candidate, problem, fault), notes=candidate.notes)
    answer["notes"] = (*candidate.notes, *answer["notes"])
    for name in ("lines", "defines", "answered"):
        answer[name] = tuple(answer[name])
    answer["cells"] = tuple((line, cell) for line, cell in answer["cells"])
    answer["unread_cells"] = tuple(UnreadCell(**cell) for cell in answer["unread_cells"])
    for name, function in answer["functions"].items():
        answer["functions"][name] = Function(**function | {"docstring": tuple(function["docstring"])})
    return Submission(**answer)


def written_cells_limited(candidate: Candidate, module: str, functions: Sequence[str] = ()) -> list[WrittenCell]:
    """Return the cells of a candidate's notebook as written; none where that exceeds the limits."""
    return [WrittenCell(**cell) for cell in _ask("written_cells", candidate, module, functions)[0] or ()]


def _ask(task: str, candidate: Candidate, module: str, *more: str | Sequence[str]) -> tuple[Any, str, str]:
    """Ask a reader; its answer, else the problem or the fault that kept it from answering, as the end of a sentence."""
    files = [(name, str(path.absolute())) for name, path in candidate.files]
    asked = [task, str(candidate.path.absolute()), files, candidate.student, candidate.shown, candidate.fault]
    question = json.dumps([*asked, module, *more]).encode() + b"\n"
    advice = ADVICE.format(module)
    try:
        answer, status = _answer_of_reader(question) if HAS_LIMITS else (_answer(question), 0)
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


def _answer_of_reader(question: bytes) -> tuple[bytes, int]:
    """Return what a reader answers, and 0, or the status that it ended with. Raises OSError where none starts."""
    while True:
        try:
            reader = idle.pop()
        except IndexError:
            limits = [str(SECONDS), str(MEMORY)]
            command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", START, str(Path(__file__).parents[2])]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            reader = subprocess.Popen(
                [*command, *limits], stdin=pipe, stdout=pipe, stderr=nowhere, cwd="/", start_new_session=True
            )
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
    most_held = 0
    while most_held < GROWN and (question := sys.stdin.buffer.readline()):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(WAIT_SECONDS)
        try:
            answer = _answer(question)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
        # `getrusage` would begin with what its parent held.
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        most_held = int(lines["VmHWM"].split()[0]) * 1024


def _answer(question: bytes) -> bytes:
    task, path, files, student, shown, fault, module, *more = json.loads(question)
    loose = tuple((name, Path(place)) for name, place in files)
    candidate = Candidate(student, Path(path), shown, loose, fault=fault)
    if task == "read":
        return json.dumps(asdict(read(candidate, module, *more))).encode()
    return json.dumps([asdict(cell) for cell in written_cells(candidate, module, *more)]).encode()

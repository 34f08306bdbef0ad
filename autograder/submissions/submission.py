"""What students handed in: `find` lists it without opening a file, `read` turns one of it into Python text.

    folder of submissions ─▶ find ─▶ Candidate ─▶ read ─▶ Submission

Nothing of a submission is executed, imported or written to disk here. Only regular files are opened, no
symbolic link inside the given folder is followed, every read has a cap, zips are unpacked in memory, and of a
notebook nothing counts but the text of its code cells. What a student got wrong is a value,
`Submission.problem`; so is what the grader could not read, `Submission.fault`. UsageError answers what was
asked on the command line.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import hashlib
import io
import itertools
import os
import re
import stat
import tokenize
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

from autograder.submissions.notebook import MAX_CODE, UNPARSABLE, Text, is_stub, notebook_text, parsed, words_of
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

MIB = 2**20
CAPS = {".py": MIB, ".ipynb": 64 * MIB, ".zip": 64 * MIB}  # bytes, on disk or unpacked from a zip
MAX_ZIP_ENTRIES = 2_000
MAX_ENTRIES_SEARCHED = 20_000
MAX_DEPTH_SEARCHED = 8
MAX_NOTES = 20

_UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap

_ENCODINGS = {"utf-8": "utf-8", "utf-8-sig": "utf-8", "ascii": "ascii", "iso8859-1": "latin-1"}


@dataclass(frozen=True)
class Candidate:
    """Something that a student handed in, found but not yet read.

    student   name shown to staff: the folder's or the file's stem; never empty, always encodable
    path      folder, .py, .ipynb or .zip
    shown     the path in reports: relative to the folder that was given, forward slashes, nothing invisible
    beside    the notebook that was handed in with a module, where a platform keeps both apart from other students'
    notes     what is known of how it was handed in
    """

    student: str
    path: Path
    shown: str
    beside: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """What was read of a candidate; `source` is "" exactly where there is a problem or a fault.

    path      `shown` and what was chosen inside: "ada/policy_gradient.py", "eve.zip/policy_gradient.ipynb"
    sha256    of the chosen file's bytes, as far as they were read
    source    Python text of the module: to be compiled as text, since a coding line in it has done its work
    problem   one sentence to the student: why there is nothing to grade
    fault     one sentence to staff: why the grader could not read it
    notes     what the report says beside the grade
    """

    student: str
    path: str
    sha256: str
    source: str
    problem: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _File:
    """One file that may be graded: its bytes, and the problem with it if there is one."""

    shown: str
    data: bytes = b""
    problem: str = ""


# Finding


def find(paths: Sequence[Path], module: str) -> list[Candidate]:
    """Every candidate at `paths`, sorted by student; no file is opened.

    paths    folders of submissions, students' own folders, or single files
    module   the name to hand in under, without suffix: "policy_gradient"
    raises   UsageError where there is nothing to grade, or a student appears twice
    """
    found: dict[str, Candidate] = {}
    for candidate in itertools.chain.from_iterable(_at(path, module) for path in paths):
        other = found.setdefault(candidate.student, candidate)
        if other.path.absolute() != candidate.path.absolute():
            both = f"{_quoted(str(other.path))} and {_quoted(str(candidate.path))}"
            raise UsageError(f"{_quoted(candidate.student)} handed in twice: {both}. Keep one of them.")
    return sorted(found.values(), key=lambda candidate: candidate.student)


def _at(path: Path, module: str) -> list[Candidate]:
    try:
        mode = path.stat().st_mode
        real = path.resolve() if path.is_symlink() else path
        entries = _entries(real) if stat.S_ISDIR(mode) else []
        own = is_students_own(entries, module)
    except (OSError, ValueError) as error:
        raise UsageError(_unusable(path, error)) from None
    if stat.S_ISDIR(mode) and not own:
        return _in_class(path, real, entries, module)
    if not own and not (stat.S_ISREG(mode) and path.suffix.lower() in CAPS):
        accepted = "a folder, or a .py, .ipynb or .zip file"
        raise UsageError(f"{_quoted(str(path))} cannot be graded: give {accepted}.")
    return [_candidate(path, real, module, is_folder=own)]


def _unusable(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"There is no file or folder {_quoted(str(path))}: check the path."
    if isinstance(error, PermissionError):
        return f"{_quoted(str(path))} may not be read by this user: change its permissions and start again."
    reason = getattr(error, "strerror", None) or "not a usable path"
    return f"{_quoted(str(path))} cannot be opened ({reason}): check the path."


def is_students_own(entries: Sequence[os.DirEntry[str]], module: str) -> bool:
    """Whether a folder with these entries is one student's: it holds the files, itself or in `module/`."""
    names = _names(module)
    if any(entry.name in names for entry in entries):
        return True
    inner = [entry for entry in entries if entry.name == module and entry.is_dir(follow_symlinks=False)]
    return any(entry.name in names for folder in inner for entry in _entries(Path(folder.path)))


def _in_class(path: Path, real: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[Candidate]:
    if not entries:
        raise UsageError(f"{_quoted(str(path))} is empty: give a folder that holds submissions.")
    candidates = [
        _candidate(path / entry.name, real / entry.name, module, is_folder=_is_folder(entry))
        for entry in entries
        if _is_folder(entry) or Path(entry.name).suffix.lower() in CAPS
    ]
    if not candidates:
        expected = "a folder, .zip, .py or .ipynb for each student"
        raise UsageError(f"{_quoted(str(path))} holds no submission: give a folder that holds {expected}.")
    return candidates


def _candidate(path: Path, real: Path, module: str, *, is_folder: bool) -> Candidate:
    """The candidate at `path`, named for it or for the first folder above that has a name of its own."""
    place = Path(os.path.normpath(path.absolute()))
    student, shown = place.name if is_folder else place.stem, place.name
    while student == module and place.parent != place:
        place = place.parent
        student, shown = place.name, f"{place.name}/{shown}"
    return Candidate(student_name(student), real, shown_name(shown))


def _names(module: str) -> tuple[str, str]:
    return f"{module}.py", f"{module}.ipynb"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What `folder` holds, sorted by name, without hidden files and what tools leave behind."""
    with os.scandir(folder) as listed:
        entries = [entry for entry in listed if not _is_ignored(entry.name)]
    return sorted(entries, key=lambda entry: entry.name)


def _is_ignored(name: str) -> bool:
    return (name.startswith(".") and name != "..") or name in ("__pycache__", "__MACOSX")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads where this user may not look: `read` says that it is a link
        return True


def _decodable(name: str) -> str:
    """`name` with each byte that is not UTF-8 written as an escape: `\\xff`."""
    escaped = re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", name)
    return escaped.encode("utf-8", "backslashreplace").decode()


def shown_name(name: str) -> str:
    """The name of a file or folder as reports show it."""
    return visible(_decodable(name)) or "."


def student_name(name: str) -> str:
    """A name that a file system or a platform gives, as the name of a student: never empty, always encodable."""
    return unicodedata.normalize("NFC", _decodable(name)) or "submission"


def _quoted(name: str) -> str:
    """`name` as a sentence shows it: one line, not too long."""
    return visible(_decodable(name), 300)


# Reading


def read(candidate: Candidate, module: str, untouched: str = "") -> Submission:
    """What `candidate` holds, as Python text; nothing that a student hands in makes this raise.

    module      the name to hand in under, without suffix
    untouched   text of the handout's module: it says which functions are graded, hence what to keep of a
                notebook, and whether a module that lies beside a notebook was ever edited
    """
    found = _read(candidate, module, untouched)
    return replace(found, notes=(*candidate.notes, *found.notes))


def _read(candidate: Candidate, module: str, untouched: str) -> Submission:
    try:
        files = _files(candidate, module)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        fault = f"{_quoted(candidate.shown)} could not be read ({reason}): see to it and grade it again."
        return _submission(candidate, _File(candidate.shown), fault=fault)
    if len(files) == 1:
        return _read_file(candidate, files[0], module, untouched)
    return _module_or_notebook(candidate, files, module, untouched)


def written_answers(candidate: Candidate, module: str) -> dict[str, str]:
    """The answers in words of a candidate's notebook, by nbgrader's names of their cells; nothing where it has none."""
    with contextlib.suppress(OSError):
        for file in _files(candidate, module):
            if _suffix(file.shown) == ".ipynb" and not file.problem:
                return words_of(_decoded(file.data).source)
    return {}


def _module_or_notebook(candidate: Candidate, files: Sequence[_File], module: str, untouched: str) -> Submission:
    """The module, unless it cannot be read, or was never edited while the notebook was."""
    of_module = _read_file(candidate, files[0], module, untouched)
    of_notebook = _read_file(candidate, files[1], module, untouched)
    if not of_module.problem and _is_edited(of_module.source, untouched):
        as_handed_out = of_notebook.source and not _is_edited(of_notebook.source, untouched)
        return of_module if as_handed_out else _chosen(of_module, "module", "it counts before a notebook")
    if of_notebook.source and not (of_module.problem or _is_edited(of_notebook.source, untouched)):
        return of_module  # neither was touched
    if of_notebook.problem:
        return _chosen(of_module, "module", "the notebook holds no answers")
    if of_module.problem:
        return _chosen(of_notebook, "notebook", "the module cannot be read")
    return _chosen(of_notebook, "notebook", "the module is as it was handed out")


def _chosen(submission: Submission, kind: str, reason: str) -> Submission:
    note = f"both a module and a notebook were handed in: the {kind} was graded because {reason}"
    return replace(submission, notes=(note, *submission.notes))


def _read_file(candidate: Candidate, file: _File, module: str, untouched: str) -> Submission:
    if file.problem:
        return _submission(candidate, file, problem=file.problem)
    text = _decoded(file.data)
    if _suffix(file.shown) == ".ipynb" and not text.problem:
        text = notebook_text(text.source, module, sorted(_functions(untouched)))
    elif not text.problem and not text.source.strip():
        text = Text(problem="is empty.")
    problem = f"{_quoted(file.shown)} {text.problem}" if text.problem else ""
    return _submission(candidate, file, text.source, problem, notes=text.notes)


def _submission(
    candidate: Candidate,
    file: _File,
    source: str = "",
    problem: str = "",
    fault: str = "",
    notes: tuple[str, ...] = (),
) -> Submission:
    if len(notes) > MAX_NOTES:
        notes = (*notes[:MAX_NOTES], f"{len(notes) - MAX_NOTES} more notes are left out here")
    digest = hashlib.sha256(file.data).hexdigest()
    return Submission(candidate.student, file.shown, digest, source, problem, fault, notes)


def _suffix(shown: str) -> str:
    return PurePosixPath(shown).suffix.lower()


def _is_edited(source: str, untouched: str) -> bool:
    """Whether `source` defines a function of the handout otherwise than the handout does."""
    try:
        theirs = _functions(source)
    except UNPARSABLE:
        return True
    given = _functions(untouched)
    return not given or any(theirs.get(name) != body for name, body in given.items())


def _functions(source: str) -> dict[str, str]:
    """The top-level functions of `source` by name, without docstrings, comments and positions."""
    if len(source) > MAX_CODE:
        raise ValueError("longer than any handout")
    functions = [statement for statement in parsed(source).body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        if ast.get_docstring(function, clean=False) is not None:
            del function.body[0]
    return {function.name: "" if is_stub(function) else ast.dump(function) for function in functions}


def _decoded(data: bytes) -> Text:
    """`data` as text, by the rules that Python has for source, for UTF-8 and what is close to it."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Text(problem="is UTF-16 text: save it as UTF-8.")
    if (position := data.find(b"\0")) >= 0:
        return Text(problem=f"is not a text file: it holds a null byte at position {position}.")
    body = data.removeprefix(codecs.BOM_UTF8)
    encoding = _encoding(data)
    try:
        text = body.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        position = error.start + len(data) - len(body)
        found = f"byte 0x{data[position]:02x} at position {position}"
        return Text(problem=f"is not {(encoding or 'utf-8').upper()} text: {found}. Save it as UTF-8.")
    if not encoding:
        return Text(problem="declares an encoding that is not UTF-8: save it as UTF-8 and delete that line.")
    return Text(text)


def _encoding(data: bytes) -> str:
    """utf-8, ascii or latin-1, as the first two lines declare it; "" where they declare anything else."""
    try:
        declared = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name
    except (SyntaxError, LookupError):
        return ""
    return _ENCODINGS.get(declared, "")


# Files on disk


def _files(candidate: Candidate, module: str) -> list[_File]:
    """The one file to grade, or a module and a notebook in this order."""
    if stat.S_ISDIR(candidate.path.lstat().st_mode):
        return _from_folder(candidate.path, candidate.shown, module)
    file = _from_disk(candidate.path, candidate.shown)
    if candidate.path.suffix.lower() not in CAPS and not file.problem:
        return [_refused(candidate.shown, "is no .py, .ipynb or .zip file: hand in one of these.", file.data)]
    if candidate.beside is not None:
        return [file, _from_disk(candidate.beside, shown_name(candidate.beside.name))]
    return _from_zip(file, module) if _suffix(file.shown) == ".zip" and not file.problem else [file]


def _from_disk(path: Path, shown: str) -> _File:
    """The bytes of a regular file; anything else is not even opened."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return _refused(shown, "is a symbolic link; hand in the file itself.")
    if not stat.S_ISREG(mode):
        return _refused(shown, "is not a regular file; hand in the file itself.")
    flags = [getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")]
    with os.fdopen(os.open(path, os.O_RDONLY | sum(flags)), "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            return _refused(shown, "is not a regular file; hand in the file itself.")
        return _capped(shown, stream, state.st_size)


def _capped(shown: str, stream: IO[bytes], announced: int) -> _File:
    """The `announced` bytes that `stream` holds, or the problem that they are more than the cap."""
    cap = CAPS.get(_suffix(shown), CAPS[".py"])
    data = stream.read(min(announced, cap) + 1)
    if len(data) > cap:
        return _refused(shown, f"is larger than {cap // MIB} MiB.", data)
    return _File(shown, data)


def _refused(shown: str, problem: str, data: bytes = b"") -> _File:
    return _File(shown, data, f"{_quoted(shown)} {problem}")


def _from_folder(folder: Path, shown: str, module: str) -> list[_File]:
    """The files in the folder itself, else those in `module/`, else those in the one folder that has any."""
    homes: dict[str, list[str]] = {}
    others: list[str] = []
    searched = 0
    for place, entries in _walk(folder, module):
        names = [entry.name for entry in entries if entry.name in _names(module)]
        if names:
            homes[place] = names
        if names and place in ("", f"{module}/"):
            homes = {place: names}
            break
        others += [f"{place}{entry.name}" for entry in entries if not entry.is_dir(follow_symlinks=False)]
        searched += len(entries)
        if searched > MAX_ENTRIES_SEARCHED:
            return [_refused(shown, f"holds too many files to search: hand in {_names(module)[0]} alone.")]
    if len(homes) > 1:
        return [_ambiguous(shown, [f"{place}{names[0]}" for place, names in homes.items()])]
    for place, names in homes.items():
        paths = [f"{place}{name}" for name in sorted(names, reverse=True)]  # .py before .ipynb
        return [_from_disk(folder / path, f"{shown}/{visible(_decodable(path))}") for path in paths]
    link = next((other for other in others if (folder / other).is_symlink()), None)
    if link is not None:
        return [_from_disk(folder / link, f"{shown}/{visible(_decodable(link))}")]  # which refuses it
    return [_nothing(shown, module, others)]


def _walk(folder: Path, module: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """`folder`, its `module/` and then all below, nearer before deeper: each as a prefix and its entries."""
    queue = ["", f"{module}/"]
    for place in queue:
        if place == queue[1] and not stat.S_ISDIR(_mode(folder / module)):
            continue
        entries = _entries(folder / place)
        yield place, entries
        if place.count("/") < MAX_DEPTH_SEARCHED:
            inner = [f"{place}{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
            queue += [name for name in inner if name != queue[1]]


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _ambiguous(shown: str, paths: Sequence[str]) -> _File:
    first, second = map(_quoted, paths[:2])
    return _refused(shown, f"holds both {first} and {second}: keep the one that counts.")


def _nothing(shown: str, module: str, others: Sequence[str]) -> _File:
    """The problem that names what was found where neither file was."""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    found = ", ".join(map(_quoted, others[:3])) + more if others else "nothing"
    return _refused(shown, "holds no {} or {}: ".format(*_names(module)) + f"what was found is {found}.")


# Zips


def _from_zip(archive: _File, module: str) -> list[_File]:
    """The files nearest to the top of the zip, unpacked in memory and never beyond their caps."""
    # zipfile builds one object for each of these signatures, whatever number the header gives.
    if archive.data.count(b"PK\x01\x02") > MAX_ZIP_ENTRIES:
        problem = f"holds more than {MAX_ZIP_ENTRIES} entries: hand in {_names(module)[0]} alone."
        return [_refused(archive.shown, problem, archive.data)]
    try:
        with zipfile.ZipFile(io.BytesIO(archive.data)) as opened:
            files = _from_members(archive.shown, opened, module)
    except Exception:  # zipfile raises a dozen types on damaged input; all is in memory, so blame the zip
        files = [_refused(archive.shown, "is damaged, or not a zip file: pack it again.")]
    return [replace(file, data=file.data or archive.data) if file.problem else file for file in files]


def _from_members(shown: str, opened: zipfile.ZipFile, module: str) -> list[_File]:
    named = [(_parts(member.filename), member) for member in opened.infolist() if not member.is_dir()]
    members = [(parts, member) for parts, member in named if parts and not any(map(_is_ignored, parts))]
    wanted = [(parts, member) for parts, member in members if parts[-1] in _names(module)]
    inside = [(parts, member) for parts, member in wanted if not _is_outside(parts)]
    if wanted and not inside:
        outside = _quoted("/".join(wanted[0][0]))
        return [_refused(shown, f"holds {outside}, which would lie outside it: pack it again.")]
    if not inside:
        return [_nothing(shown, module, ["/".join(parts) for parts, _ in members])]
    depth = min(len(parts) for parts, _ in inside)
    nearest = [(parts, member) for parts, member in inside if len(parts) == depth]
    nearest.sort(key=lambda one: one[0], reverse=True)  # .py before .ipynb
    if len({parts[:-1] for parts, _ in nearest}) > 1 or len({parts for parts, _ in nearest}) < len(nearest):
        return [_ambiguous(shown, ["/".join(parts) for parts, _ in nearest])]
    return [_from_member(f"{shown}/{visible('/'.join(parts))}", opened, member) for parts, member in nearest]


def _parts(filename: str) -> tuple[str, ...]:
    return PurePosixPath(filename.replace("\\", "/")).parts  # some tools on Windows write backslashes


def _is_outside(parts: Sequence[str]) -> bool:
    return parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":"


def _from_member(shown: str, opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> _File:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return _refused(shown, "is a symbolic link; hand in the file itself.")
    if kind not in (0, stat.S_IFREG):
        return _refused(shown, "is not a regular file; hand in the file itself.")
    if member.flag_bits & 0x1:
        return _refused(shown, "is encrypted: pack it again without a password.")
    if member.compress_type not in _UNPACKED_BY_PIECES:
        return _refused(shown, "is packed by an unusual method: pack it again as an ordinary zip.")
    with opened.open(member) as stream:
        return _capped(shown, stream, member.file_size)

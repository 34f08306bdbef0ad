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
import hashlib
import io
import itertools
import json
import os
import re
import stat
import symtable
import tokenize
import unicodedata
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from autograder.errors import UsageError
from autograder.text import visible

MIB = 2**20
CAPS = {".py": MIB, ".ipynb": 64 * MIB, ".zip": 64 * MIB}  # bytes, on disk or unpacked from a zip
MAX_ZIP_ENTRIES = 2_000
MAX_ENTRIES_SEARCHED = 20_000
MAX_DEPTH_SEARCHED = 8
MAX_JSON_TOKENS = 2_000_000  # bounds the memory that parsing a notebook takes
MAX_CELLS = 5_000
MAX_CODE = 256 * 1024  # characters of code in a whole notebook
MAX_CODE_LINE = 10_000  # Python parses one long f-string in quadratic time
MAX_NOTES = 20

_UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, getattr(ast, "TypeAlias", ast.Assign))
_DEFINING = (*_DEFINITIONS, *_IMPORTS, *_ASSIGNMENTS, ast.If, ast.Try, ast.TryStar, ast.With)

_ENCODINGS = {"utf-8": "utf-8", "utf-8-sig": "utf-8", "ascii": "ascii", "iso8859-1": "latin-1"}
_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[{,]', re.DOTALL)
_CONFLICT = re.compile(r"^(?:<<<<<<<|>>>>>>>)", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\s*(%%(\w*)[^\n]*)")
_TIMING_MAGICS = ("time", "timeit", "capture")
_IPYTHON_LINE = re.compile(
    r"""[ \t]*+(?:[%!?]|(?:pip|conda)[ ]|[^#'"]*\?[ \t]*$|[\w.,\[\] \t]++=[ \t]*+[%!](?!=))"""
)
_OPENING = re.compile(r"""#.*|"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[(\[{]|[)\]}]|\\$""")
_JOINT = re.compile(r"(?:[ \t;]|\\\n)*")  # what can stand between two statements on one line


@dataclass(frozen=True)
class Candidate:
    """Something that a student handed in, found but not yet read.

    student   name shown to staff: the folder's or the file's stem; never empty, always encodable
    path      folder, .py, .ipynb or .zip
    shown     the path in reports: relative to the folder that was given, forward slashes, nothing invisible
    """

    student: str
    path: Path
    shown: str


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


@dataclass(frozen=True)
class _Text:
    """What a file says: Python text, or the problem with it as the end of a sentence."""

    source: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()


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
        own = _is_students_own(entries, module)
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


def _is_students_own(entries: Sequence[os.DirEntry[str]], module: str) -> bool:
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
    student = unicodedata.normalize("NFC", _decodable(student))
    return Candidate(student or "submission", real, visible(_decodable(shown)) or ".")


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
    try:
        files = _files(candidate, module)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        fault = f"{_quoted(candidate.shown)} could not be read ({reason}): see to it and grade it again."
        return _submission(candidate, _File(candidate.shown), fault=fault)
    if len(files) == 1:
        return _read_file(candidate, files[0], module, untouched)
    return _module_or_notebook(candidate, files, module, untouched)


def _module_or_notebook(
    candidate: Candidate, files: Sequence[_File], module: str, untouched: str
) -> Submission:
    """The module, unless it cannot be read, or was never edited while the notebook was."""
    of_module = _read_file(candidate, files[0], module, untouched)
    if not of_module.problem and _is_edited(of_module.source, untouched):
        return _chosen(of_module, "module", "it counts before a notebook")
    of_notebook = _read_file(candidate, files[1], module, untouched)
    if of_notebook.problem or not (of_module.problem or _is_edited(of_notebook.source, untouched)):
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
        text = _notebook(text.source, module, sorted(_functions(untouched)))
    elif not text.problem and not text.source.strip():
        text = _Text(problem="is empty.")
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
    except _UNPARSABLE:
        return True
    given = _functions(untouched)
    return not given or any(theirs.get(name) != body for name, body in given.items())


def _functions(source: str) -> dict[str, str]:
    """The top-level functions of `source` by name, without docstrings, comments and positions."""
    if len(source) > MAX_CODE:
        raise ValueError("longer than any handout")
    functions = [statement for statement in _parsed(source).body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        if ast.get_docstring(function, clean=False) is not None:
            del function.body[0]
    return {function.name: ast.dump(function) for function in functions}


def _parsed(text: str) -> ast.Module:
    """The syntax tree of `text`, checked as far as Python checks without running it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is the student's, not the grader's
        tree = ast.parse(text)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def _decoded(data: bytes) -> _Text:
    """`data` as text, by the rules that Python has for source, for UTF-8 and what is close to it."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Text(problem="is UTF-16 text: save it as UTF-8.")
    if (position := data.find(b"\0")) >= 0:
        return _Text(problem=f"is not a text file: it holds a null byte at position {position}.")
    body = data.removeprefix(codecs.BOM_UTF8)
    encoding = _encoding(data)
    try:
        text = body.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        position = error.start + len(data) - len(body)
        found = f"byte 0x{data[position]:02x} at position {position}"
        return _Text(problem=f"is not {(encoding or 'utf-8').upper()} text: {found}. Save it as UTF-8.")
    if not encoding:
        return _Text(problem="declares an encoding that is not UTF-8: save it as UTF-8 and delete that line.")
    return _Text(text)


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


# Notebooks


@dataclass(frozen=True)
class _Statement:
    """A top-level statement of a code cell.

    text      everything since the end of the statement before it: texts joined are the cell
    binds     names that it gives a meaning in the module
    changes   names that it may alter: x in `x[0] = 1`, in `x.y = 1`, in `@x` and in `class C(x)`
    uses      names of the module that it needs, when it runs or when it is called
    """

    cell: int
    node: ast.stmt
    text: str
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()


def _notebook(text: str, module: str, graded: Sequence[str]) -> _Text:
    """What a notebook defines, without its experiments: the graded functions and all that they need."""
    codes = _code_cells(text)
    if isinstance(codes, _Text):
        return codes
    statements: list[_Statement] = []
    notes: list[str] = []
    for number, code in enumerate(codes, 1):
        found = _statements(number, code, module)
        if isinstance(found, str):
            notes.append(found)
        else:
            statements += found
    statements = _with_changes(statements)
    roots = frozenset(graded) or _definitions(statements)
    names = _needed(statements, roots)
    notes += [*_defined_twice(statements), *_loops_left_out(statements, names)]
    if not any(_is_kept(statement, roots) for statement in statements):
        return _Text(problem="defines no function to grade in its code cells.", notes=tuple(notes))
    return _Text(_source(statements, names), notes=tuple(notes))


def _code_cells(text: str) -> list[str] | _Text:
    """The code of every cell, "" for a cell that is not code."""
    if len(text) > MAX_JSON_TOKENS:
        tokens = itertools.islice(_JSON_TOKEN.finditer(text), MAX_JSON_TOKENS, None)
        if next(tokens, None) is not None:
            return _Text(problem="holds too much: clear the outputs of all cells and save it again.")
    try:
        raw = json.loads(text)
    except RecursionError:
        return _Text(problem="is not a notebook: its JSON is nested too deeply.")
    except ValueError as error:
        return _Text(problem=_not_json(text, error))
    bare = _without_outputs(raw)
    if bare is None:
        return _Text(problem="is not a notebook: it has no list of cells.")
    sizes = [len(cell.get("source") or cell.get("input") or "") for cell in _cells(bare)]
    if len(sizes) > MAX_CELLS or sum(sizes) > MAX_CODE:
        limits = f"{MAX_CELLS} cells and {MAX_CODE // 1024} KiB of code"
        return _Text(problem=f"is too large: more than {limits} are not graded.")
    try:
        import nbformat  # only notebooks need it, and a student's machine may lack it
    except ImportError:
        return _Text(problem="cannot be read without the package nbformat: pip install nbformat.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.reads(json.dumps(bare), as_version=4)  # type: ignore[no-untyped-call]
    return [cell.source if cell.cell_type == "code" else "" for cell in notebook.cells]


def _not_json(text: str, error: ValueError) -> str:
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        return f"holds a merge conflict at line {line}: resolve it, and save the notebook in Jupyter."
    where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"is not a notebook: its JSON is broken{where}. Save it again in Jupyter."


def _without_outputs(raw: Any) -> dict[str, Any] | None:
    """The notebook with nothing but its cells' code, valid in format 4 or 3; None where it has no cells."""
    if not isinstance(raw, dict):
        return None
    if isinstance(cells := raw.get("cells"), list):
        bare = [_bare(cell, "source", execution_count=None) for cell in cells]
        return {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": bare}
    if isinstance(sheets := raw.get("worksheets"), list):
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in _listed(sheet.get("cells"))]
        bare = [_bare(cell, "input", language="python", collapsed=False) for cell in cells]
        worksheets = [{"metadata": {}, "cells": bare}]
        return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": worksheets}
    return None


def _bare(cell: Any, key: str, **more: Any) -> dict[str, Any]:
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return {"cell_type": "markdown", "metadata": {}, "source": ""}
    lines = cell.get(key, "")
    texts = [lines] if isinstance(lines, str) else [line for line in _listed(lines) if isinstance(line, str)]
    code = "".join(texts)
    return {"cell_type": "code", "metadata": {}, "outputs": [], key: code, **more}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cells(bare: dict[str, Any]) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = bare["cells"] if "cells" in bare else bare["worksheets"][0]["cells"]
    return cells


# Code cells


def _statements(number: int, code: str, module: str) -> list[_Statement] | str:
    """The statements of cell `number`, or a note that says why it was left out."""
    left_out = f"cell {number} was left out: "
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if magic := _CELL_MAGIC.match(code):
        if magic[2] not in _TIMING_MAGICS:
            return f"{left_out}it is a {visible('%%' + magic[2], 20)} cell, not Python"
        code = code[: magic.start(1)] + code[magic.end(1) :]
    if max(map(len, code.split("\n"))) > MAX_CODE_LINE:
        return f"{left_out}it has a line of more than {MAX_CODE_LINE} characters"
    if "\0" in code:
        return f"{left_out}it holds a null byte"
    try:
        try:
            tree = _parsed(code)
        except SyntaxError:
            code = _without_ipython(code)
            tree = _parsed(code)
        return list(_split(number, code, tree, module))
    except SyntaxError as error:
        return f"{left_out}it has a syntax error" + (f" on its line {error.lineno}" if error.lineno else "")
    except _UNPARSABLE:
        return f"{left_out}Python cannot parse it"


def _without_ipython(code: str) -> str:
    """`code` with the lines that only IPython understands replaced by `pass`, line numbers kept.

    Lines inside a string or a bracket and continued lines are left alone: there % is an operator.
    """
    lines = code.split("\n")
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]  # IPython takes off a common indentation
    lines = [line.removeprefix(margin) for line in lines]
    state = _NEUTRAL
    for number, line in enumerate(lines):
        if state == _NEUTRAL and _IPYTHON_LINE.match(line):
            lines[number] = line[: len(line) - len(line.lstrip(" \t"))] + "pass"
            state = _MAGIC if line.endswith("\\") else _NEUTRAL
        elif state == _MAGIC:
            lines[number] = ""
            state = _MAGIC if line.endswith("\\") else _NEUTRAL
        else:
            state = _scanned(line, state)
    return "\n".join(lines)


# What a line starts in: the quotes of an open string, the depth of brackets, whether the line before goes on.
_NEUTRAL = ("", 0, False)
_MAGIC = ("%", 0, True)  # an IPython command that goes on over the line's end


def _scanned(line: str, state: tuple[str, int, bool]) -> tuple[str, int, bool]:
    """The state after `line`, which starts in `state`."""
    quotes, depth, _ = state
    position, continued = 0, False
    while True:
        if quotes:
            if not (end := re.compile(rf"(?:\\.|[^\\])*?{quotes}").match(line, position)):
                return quotes, depth, False
            quotes, position = "", end.end()
        if not (piece := _OPENING.search(line, position)):
            return quotes, depth, continued
        position = piece.end()
        quotes = piece[0] if piece[0] in ('"' * 3, "'" * 3) else ""
        depth = max(0, depth + (piece[0] in "([{") - (piece[0] in ")]}"))
        continued = piece[0] == "\\"


def _split(number: int, code: str, tree: ast.Module, module: str) -> Iterator[_Statement]:
    raw = code.encode()
    starts = [0, *itertools.accumulate(len(line) + 1 for line in raw.split(b"\n"))]
    position = 0
    for node in tree.body:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = raw[position:end].decode()
        position = end
        statement = _Statement(number, node, text)
        yield _with_scope(statement) if _may_define(node, module) else statement


def _may_define(node: ast.stmt, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module not in ("__future__", module)
    if isinstance(node, ast.If):
        return not any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
    return isinstance(node, _DEFINING + _LOOPS)


def _with_scope(statement: _Statement) -> _Statement:
    """The statement with what it binds, changes and uses; a star import binds `*`."""
    text = _JOINT.sub("", statement.text, count=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = symtable.symtable(text, "<cell>", "exec")
    binds = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    uses = {name.get_name() for name in top.get_symbols() if name.is_referenced()}
    inner = top.get_children()
    for table in inner:
        uses |= {name.get_name() for name in table.get_symbols() if name.is_global()}
        inner += table.get_children()
    if isinstance(statement.node, ast.ImportFrom) and statement.node.names[0].name == "*":
        binds = {"*"}
    changes = frozenset(_changed(statement.node))
    return replace(statement, binds=frozenset(binds), changes=changes, uses=frozenset(uses))


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names that running `node` may alter without binding them."""
    altered: list[ast.expr] = []
    if isinstance(node, _DEFINITIONS):
        altered += [*node.decorator_list, *getattr(node, "bases", [])]
    else:
        for part in ast.walk(node):
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            altered += [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
    for expression in altered:
        while isinstance(expression, ast.Attribute | ast.Subscript | ast.Call):
            expression = expression.func if isinstance(expression, ast.Call) else expression.value
        if isinstance(expression, ast.Name):
            yield expression.id


# What to keep of a notebook


def _with_changes(statements: Sequence[_Statement]) -> list[_Statement]:
    """Statements, with a change to what the notebook itself made counted as binding it.

    A definition under the notebook's own decorator or base class may enter itself in a register somewhere: it
    binds `*`, which is always needed.
    """
    own = frozenset[str]().union(*(one.binds for one in statements if not isinstance(one.node, _IMPORTS)))
    changed: list[_Statement] = []
    for statement in statements:
        changes = statement.changes & own
        if changes and isinstance(statement.node, _DEFINITIONS):
            changes = frozenset("*")
        changed.append(replace(statement, binds=statement.binds | changes))
    return changed


def _definitions(statements: Sequence[_Statement]) -> frozenset[str]:
    """Every name that a notebook defines: functions, classes, and other names for them."""
    defined: set[str] = set()
    for statement in statements:
        value = statement.node.value if isinstance(statement.node, ast.Assign) else None
        renamed = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in defined)
        if renamed or isinstance(statement.node, _DEFINITIONS):
            defined |= statement.binds
    return frozenset(defined)


def _needed(statements: Sequence[_Statement], roots: frozenset[str]) -> frozenset[str]:
    """`roots` and the names that they use, directly or through others; star imports are always needed."""
    makers: defaultdict[str, list[_Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.binds if _is_kept(statement, statement.binds) else ():
            makers[name].append(statement)
    needed = {"*", *roots}
    queue = list(needed)
    seen: set[int] = set()
    for name in queue:
        for statement in makers[name]:
            new = statement.uses - needed if id(statement) not in seen else frozenset[str]()
            seen.add(id(statement))
            needed |= new
            queue += new
    return frozenset(needed)


def _is_kept(statement: _Statement, names: frozenset[str]) -> bool:
    return not isinstance(statement.node, _LOOPS) and not names.isdisjoint(statement.binds)


def _defined_twice(statements: Sequence[_Statement]) -> list[str]:
    cells: dict[str, list[int]] = {}
    for statement in statements:
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef):
            cells.setdefault(statement.node.name, []).append(statement.cell)
    return [
        f"cells {_listing(sorted(set(numbers)))} define {visible(name, 60)}: the last one counts"
        for name, numbers in cells.items()
        if len(set(numbers)) > 1
    ]


def _loops_left_out(statements: Sequence[_Statement], names: frozenset[str]) -> list[str]:
    return [
        f"cell {statement.cell}: a loop that sets {_listing(sorted(names & statement.binds))} was left out, "
        "since only definitions are graded"
        for statement in statements
        if isinstance(statement.node, _LOOPS) and names & statement.binds
    ]


def _listing(values: Sequence[object]) -> str:
    *most, last = (visible(str(value), 60) for value in values)
    return f"{', '.join(most)} and {last}" if most else last


def _source(statements: Sequence[_Statement], names: frozenset[str]) -> str:
    """The kept statements in order: each cell under a line `# cell 7`, line for line as it stands there."""
    future = any(
        isinstance(statement.node, ast.ImportFrom)
        and statement.node.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.node.names)
        for statement in statements
    )
    lines = ["from __future__ import annotations\n"] if future else []
    for number, group in itertools.groupby(statements, key=lambda statement: statement.cell):
        cell = list(group)
        if any(_is_kept(statement, names) for statement in cell):
            lines.append(f"# cell {number}\n{_cell_source(cell, names)}\n")
    return "\n".join(lines)


def _cell_source(cell: Sequence[_Statement], names: frozenset[str]) -> str:
    """The cell's text with everything but line breaks taken out of the statements that are not kept."""
    kept = ""
    for statement in cell:
        text = statement.text
        if not _is_kept(statement, names):
            text = "\n" * text.count("\n")
        elif not kept or kept.endswith("\n"):  # nothing is left before it on its line: no semicolon either
            text = _JOINT.sub(lambda joint: "\n" * joint[0].count("\n"), text, count=1)
        kept += text
    return kept.rstrip("\n")

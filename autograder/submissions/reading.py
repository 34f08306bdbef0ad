"""A Candidate → its Submission: the Python text that is graded, or why there is none.

Nothing of a submission is executed, imported or written to disk here. Only regular files are opened, no symbolic link
inside the given folder is followed, every read has a cap, zips are unpacked in memory, and of a notebook nothing counts
but the text of its code cells. What a student got wrong is a value, `Submission.problem`; so is what the grader could
not read, `Submission.fault`.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import io
import stat
import tokenize
from collections.abc import Sequence
from dataclasses import replace

from autograder.submissions.handed_file import HandedFile, from_disk, packed, refused
from autograder.submissions.names import defined, defines_one, is_archive, kind_of, suffix_of
from autograder.submissions.notebook import (
    MAX_CODE,
    Text,
    WrittenCell,
    cells_in,
    lines_of_script,
    notebook_of_script,
    notebook_text,
)
from autograder.submissions.student_folders import from_folder
from autograder.submissions.student_zips import from_zip
from autograder.submissions.submission import CAPS, Candidate, Submission, quoted, shown_name
from autograder.submissions.syntax import UNPARSABLE, functions_of, outline, parsed

MAX_NOTES = 20
SEE_TO_IT = "see to it and grade it again."
_REFUSED = ("utf-16", "utf-32", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape")


def read(candidate: Candidate, module: str, untouched: str = "", of_course: Sequence[str] = ()) -> Submission:
    """What `candidate` holds, as Python text; nothing that a student hands in makes this raise.

    module      the name to hand in under, without suffix
    untouched   text of the handout's module: it says which functions are graded, hence what to keep of a
                notebook, and whether a module that lies beside a notebook was ever edited
    of_course   the functions that are graded in any assignment: see `Submission.defines`
    """
    found = _read(candidate, module, untouched, of_course)
    functions = outline(found.source, graded(untouched))
    return replace(found, notes=(*candidate.notes, *found.notes), functions=functions)


def _read(candidate: Candidate, module: str, untouched: str, of_course: Sequence[str]) -> Submission:
    if candidate.fault:
        return _submission(candidate, HandedFile(candidate.shown), fault=candidate.fault)
    try:
        files = _files(candidate, module, graded(untouched))
        if len(files) == 1:
            found = _read_file(candidate, files[0], module, untouched)
        else:
            found = _module_or_notebook(candidate, files, module, untouched)
        if found.problem and of_course:  # what would have been chosen of another assignment
            files = [file for file in _files(candidate, module, of_course) if not file.problem and not file.fault]
            if files:
                found = replace(found, path=files[0].shown, sha256=hashlib.sha256(files[0].data).hexdigest())
        return replace(found, defines=tuple(sorted(set().union(*(defined(file.data, of_course) for file in files)))))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return nothing_read(candidate, fault=f"could not be read ({reason}): {SEE_TO_IT}")


def nothing_read(candidate: Candidate, problem: str = "", fault: str = "") -> Submission:
    """The submission of a candidate of whom no file could be read, and why, as the end of a sentence."""
    problem, fault = (f"{quoted(candidate.shown)} {reason}" if reason else "" for reason in (problem, fault))
    return _submission(candidate, HandedFile(candidate.shown), problem=problem, fault=fault)


def written_cells(candidate: Candidate, module: str, functions: Sequence[str] = ()) -> list[WrittenCell]:
    """The cells of a candidate's notebook as they were written; nothing where it has none.

    functions   that are graded: they tell a notebook that was worked at from one that was handed out
    """
    return cells_in(_notebook(candidate, module, functions))


def _notebook(candidate: Candidate, module: str, functions: Sequence[str]) -> str:
    """The text of a candidate's notebook, "" where there is none; where it cannot be graded, words may still count."""
    with contextlib.suppress(OSError):
        for file in _files(candidate, module, functions):
            if kind_of(file.shown) == ".ipynb" and not file.problem:
                return _decoded(file.data).source or _salvaged(file.data)
    return ""


def _salvaged(data: bytes) -> str:
    """What a person can still read of text that is in no encoding that is graded."""
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf_16 else "utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _module_or_notebook(candidate: Candidate, files: Sequence[HandedFile], module: str, untouched: str) -> Submission:
    """The module, unless it cannot be read or parsed, or was never edited, while the notebook can be and was."""
    of_module = _read_file(candidate, files[0], module, untouched)
    unread = of_module.problem.removesuffix(".") or _unparsable(of_module.source)
    of_notebook = _read_file(candidate, files[1], module, untouched)
    if not unread and _is_edited(of_module.source, untouched):
        as_handed_out = of_notebook.source and not _is_edited(of_notebook.source, untouched)
        return of_module if as_handed_out else _chosen(of_module, "module", "it counts before a notebook")
    if of_notebook.source and not _is_edited(of_notebook.source, untouched):
        return of_module  # neither was touched, or the module holds what cannot be read
    if of_notebook.problem:
        return _chosen(of_module, "module", "the notebook holds no answers")
    if unread:
        return _chosen(of_notebook, "notebook", f"the module cannot be read: {unread}")
    return _chosen(of_notebook, "notebook", "the module is as it was handed out")


def _chosen(submission: Submission, kind: str, reason: str) -> Submission:
    note = f"both a module and a notebook were handed in: the {kind} was graded because {reason}"
    return replace(submission, notes=(note, *submission.notes))


def _files(candidate: Candidate, module: str, functions: Sequence[str] = ()) -> list[HandedFile]:
    """The one file to grade, or a module and a notebook in this order."""
    if stat.S_ISDIR(candidate.path.lstat().st_mode):
        return from_folder(candidate.path, candidate.shown, module, functions)
    file = from_disk(candidate.path, candidate.shown)
    if suffix_of(candidate.shown) not in CAPS and not file.problem:
        if is_archive(candidate.shown, file.data):
            return [packed(candidate.shown)]
        if kind_of(candidate.shown) not in CAPS or not defines_one(file.data, functions):
            return [refused(candidate.shown, "is no .py, .ipynb or .zip file: hand in one of these.", file.data)]
    if candidate.beside is not None:
        return [file, from_disk(candidate.beside, shown_name(candidate.beside.name))]
    return from_zip(file, module, functions) if kind_of(file.shown) == ".zip" and not file.problem else [file]


def _read_file(candidate: Candidate, file: HandedFile, module: str, untouched: str) -> Submission:
    found = _read_text(candidate, file, module, untouched)
    return replace(found, notes=(file.note, *found.notes)) if file.note else found


def _read_text(candidate: Candidate, file: HandedFile, module: str, untouched: str) -> Submission:
    if file.problem or file.fault:
        return _submission(candidate, file, problem=file.problem, fault=file.fault)
    text = _decoded(file.data)
    if kind_of(file.shown) == ".py" and (notebook := notebook_of_script(text.source)):
        lines, problem = lines_of_script(text.source), text.problem
        text = replace(notebook_text(notebook, module, graded(untouched)), problem=problem, lines=lines)
    elif kind_of(file.shown) == ".ipynb" and not text.problem:
        text = notebook_text(text.source, module, graded(untouched))
    elif not text.problem and not text.source.strip():
        text = Text(problem="is empty.")
    elif len(text.source) > MAX_CODE:
        text = Text(problem=f"is too large: more than {MAX_CODE // 1024} KiB of code are not graded.")
    problem = f"{quoted(file.shown)} {text.problem}" if text.problem else ""
    read_text = _submission(candidate, file, text.source, problem, notes=text.notes)
    return replace(read_text, cells=text.cells, lines=text.lines, unread=text.unread, unread_cells=text.unread_cells)


def _submission(
    candidate: Candidate,
    file: HandedFile,
    source: str = "",
    problem: str = "",
    fault: str = "",
    notes: tuple[str, ...] = (),
) -> Submission:
    if len(notes) > MAX_NOTES:
        notes = (*notes[:MAX_NOTES], f"{len(notes) - MAX_NOTES} more notes are left out here")
    digest = hashlib.sha256(file.data).hexdigest()
    return Submission(candidate.student, file.shown, digest, source, problem, fault, notes)


def graded(untouched: str) -> tuple[str, ...]:
    """The functions that are graded: those that were handed out."""
    return tuple(sorted(functions_of(untouched)))


def _unparsable(source: str) -> str:
    """Why Python cannot parse it; "" where it can."""
    try:
        parsed(source)
    except UNPARSABLE as error:
        line = getattr(error, "lineno", None)
        return f"it is no Python from line {line} on" if line else "it is no Python"
    return ""


def _is_edited(source: str, untouched: str) -> bool:
    """Whether `source` defines a function of the handout otherwise than the handout does."""
    try:
        theirs = functions_of(source)
    except UNPARSABLE:
        return True
    given = functions_of(untouched)
    return not given or any(theirs.get(name) != body for name, body in given.items())


def _decoded(data: bytes) -> Text:
    """`data` as text, by the rules that Python has for source: UTF-8, or what its first two lines declare."""
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
        return Text(problem="declares an encoding that Python cannot read it in: save it as UTF-8, delete that line.")
    return Text(text)


def _encoding(data: bytes) -> str:
    """What the first two lines declare, else utf-8; "" where that is none that writes plain text byte by byte."""
    try:
        declared = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name.removesuffix("-sig")
        usable = not declared.startswith(_REFUSED) and "def".encode(declared) == b"def"
    except (SyntaxError, LookupError, UnicodeError):  # a LookupError is also what turns bytes into bytes
        return ""
    return declared if usable else ""

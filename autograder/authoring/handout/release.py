"""Solution → handout: stubs, given files, public cases and the checker, as a folder and a zip. Nothing for staff eyes.

What a student receives is put together from a list, never by leaving things out of a copy; then it is searched for the
solution's lines and for hidden cases, and refused if one is found. Read `handout_files` first.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from autograder.authoring.calls import NOT_INDEPENDENT
from autograder.authoring.catalogue import without_marks
from autograder.authoring.exam.contract import read_contract
from autograder.authoring.handout.notebook import (
    BEGIN,
    END,
    EXTRAS,
    Notebook,
    marked_lines,
    read_extras,
    released,
    source_notebook,
    template,
    to_bytes,
)
from autograder.checking.handout import with_records, write_handout
from autograder.grading.assignment import PACKAGES, UNTOUCHED, Assignment
from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.submissions.notebook import DEFINITIONS
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import ENGINE, write_atomically
from autograder.vocabulary.text import number

DISTRIBUTION = "policy-gradient-autograder"
OPTIONAL = ("experiments.py",)
STUDENT_PACKAGES = ("vocabulary", "sandbox", "submissions", "grading", "checking")
STUDENT_REQUIREMENTS = (
    "torch", "einops", "numpy", "matplotlib", "safetensors", "tqdm", "pytest", "pytest-timeout",
)  # fmt: skip
ENGINE_NEEDS = {"numpy"}  # of what an assignment may do without, what the engine cannot
# What a student may have instead of the exact version that grading uses; each end is tried with every handout.
RANGES = {"torch": "torch>=2.6"}
RANGE_NOTE = "# Grading uses {}. With another version, an item that a seed decides may differ here and not there.\n"
GIT_ATTRIBUTES = ".gitattributes"
ATTRIBUTES = """\
# Text with the line ends that it was made with, on every system; pictures and tensors byte for byte.
* text=auto eol=lf
*.safetensors binary
*.png binary
*.zip binary
"""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows: the same handout gives the same bytes
LONG_LINE = 24  # shorter lines of code, such as `with torch.no_grad():`, may stand anywhere
POINTS_BEGIN, POINTS_END = "<!-- points:begin -->", "<!-- points:end -->"
HIDDEN = re.compile(r"^[ \t]*hidden[ \t]*=[ \t]*\[[^\]]*\][^\n]*\n?", re.MULTILINE)  # no case's name holds a bracket

Files = dict[str, bytes]


def handout_files(assignment: Assignment, folder: Path | None = None) -> Files:
    """The whole handout: path with forward slashes → bytes; `folder` may hold another set of fixtures.

    Raises ReleaseError rather than give anything away.
    """
    folder = folder or assignment.folder
    solution = _text(assignment.solution / f"{assignment.module}.py")
    stubs = stub(solution, assignment)
    test_name = f"test_{assignment.module}.py"
    own_tests = assignment.solution / test_name
    readme = with_points(_text(assignment.solution / "README.md"), assignment)
    title, heading, rest = readme.partition("## ")
    installation = template("installation.md", name=assignment.name, torch=assignment.needs_torch)
    listed = _listed_files(assignment)
    texts = {
        f"{assignment.module}.py": stubs,
        "README.md": title + installation + heading + rest,
        **{name: _text(assignment.solution / name) for name in OPTIONAL if (assignment.solution / name).is_file()},
        test_name: _text(own_tests) if own_tests.is_file() else template("test_items.py"),
        "requirements.txt": student_requirements(assignment.packages),
        GIT_ATTRIBUTES: ATTRIBUTES,
        **student_engine(),
    }
    files = {name: text.encode() for name, text in texts.items()}
    files[f"{assignment.module}.ipynb"] = to_bytes(released(notebook_of(assignment)))
    fixtures = read_fixtures(assignment, folder=folder)
    files |= _public_fixtures(assignment, fixtures, stubs, folder)
    if twice := sorted(files.keys() & listed.keys()):
        raise ReleaseError(f"items.toml hands out {twice[0]!r}, a file that `release` makes itself.")
    files |= listed
    refuse_leaks(files, solution, fixtures, read_extras(assignment).guides)
    return with_records(files)


def _listed_files(assignment: Assignment) -> Files:
    """The files of the solution's folder that `given` and `also` of items.toml name; ReleaseError for any other."""
    home = assignment.solution.resolve()
    names = [*(f"{name}.py" for name in assignment.given), *assignment.also]
    for name in names:
        path = (home / name).resolve()  # of a link, where it leads
        if not path.is_relative_to(home) or path.relative_to(home).as_posix() != name or name == EXTRAS:
            where = f"solution/{assignment.name}/"
            raise ReleaseError(
                f"items.toml hands out {name!r}: `given` and `also` name students' files in {where} alone."
            )
    return {name: _data(home / name) for name in names}


def student_engine() -> dict[str, str]:
    """The packages that `check` and a notebook's test cells need, whole: path with forward slashes → text.

    No folder may be called `feedback`: nbgrader's fetch leaves such a folder out, for it keeps its own under that name.
    """
    modules = [ENGINE / "__init__.py", ENGINE / "__main__.py"]
    modules += [path for name in STUDENT_PACKAGES for path in (ENGINE / name).rglob("*.py")]
    return {f"autograder/{path.relative_to(ENGINE).as_posix()}": _text(path) for path in sorted(modules)}


def notebook_of(assignment: Assignment) -> Notebook:
    """nbgrader's source notebook of the assignment, made from what instructors edit."""
    readme = with_points(_text(assignment.solution / "README.md"), assignment)
    module = without_marks(_text(assignment.solution / f"{assignment.module}.py"))
    return source_notebook(assignment, readme, module, read_extras(assignment))


def write_source_notebook(assignment: Assignment) -> Path:
    """Make the source notebook anew, beside what it is made from."""
    path = assignment.solution / f"{assignment.module}.ipynb"
    write_atomically(path, to_bytes(notebook_of(assignment)))
    return path


def stub(source: str, assignment: Assignment) -> str:
    """The module with each answer replaced by `raise NotImplementedError("<function>")`.

    Raises ReleaseError where markers are not in pairs, stand outside a function, or leave a graded function whole.
    """
    module, lines = f"{assignment.module}.py", [*marked_lines(source)]
    markers = [(count, line.strip()) for count, (line, _) in enumerate(lines, 1) if line.strip() in (BEGIN, END)]
    for (count, marker), right in zip(markers, itertools.cycle((BEGIN, END)), strict=False):
        if marker != right:
            raise ReleaseError(f"Line {count} of {module}: {marker!r} has no partner.")
    if len(markers) % 2:
        raise ReleaseError(f"Line {markers[-1][0]} of {module}: an answer has no {END!r}.")
    defined = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DEFINITIONS)]
    replaced: set[str] = set()
    kept: list[str] = []
    for count, (line, place) in enumerate(lines, 1):
        if place == "begin":
            around = [node for node in defined if node.lineno <= count <= (node.end_lineno or 0)]
            names = [node.name for node in around if not isinstance(node, ast.ClassDef)]  # the innermost last
            if not names:
                raise ReleaseError(f"Line {count} of {module}: an answer stands outside every function.")
            replaced |= {node.name for node in around}
            kept.append(line.replace(BEGIN, f'raise NotImplementedError("{names[-1]}")').rstrip())
        elif place == "outside":
            kept.append(line)
    if whole := [name for name in assignment.functions if name not in replaced]:
        raise ReleaseError(f"No answer is marked in {', '.join(whole)}: put {BEGIN!r} and {END!r} around it.")
    return without_marks("\n".join(kept))


def with_points(text: str, assignment: Assignment) -> str:
    """The assignment text with the table of items, by function and with sums, between its two comments."""
    before, begin, rest = text.partition(POINTS_BEGIN)
    _, end, after = rest.partition(POINTS_END)
    if not begin or not end:
        raise ReleaseError(f"The solution's README.md lacks {POINTS_BEGIN} and {POINTS_END} for its table of points.")
    lines = ["| item | what is checked | points |", "|---|---|---:|"]
    for function in assignment.functions:
        items = [item for item in assignment.items if item.function == function]
        lines.append(f"| **`{function}`** | | **{number(sum(item.points for item in items))}** |")
        lines += [f"| `{item.id}` | {item.title} | {number(item.points)} |" for item in items]
    lines.append(f"| **all** | | **{number(assignment.max_points)}** |")
    return "\n".join([f"{before}{begin}", *lines, f"{end}{after}"])


def without_hidden(items: str) -> str:
    """`items.toml` as students get it: without its entries `hidden = […]`, on one line or several.

    Another layout, which this cannot mask, is a fault that authors are told of.
    """
    return HIDDEN.sub("", items)


def _public_fixtures(assignment: Assignment, fixtures: Fixtures, stubs: str, folder: Path) -> Files:
    """The public cases as a set of fixtures of their own, with a manifest that knows of no other."""
    public = [case for case in (*fixtures.cases, *fixtures.curves) if case.visibility == "public"]
    names = sorted({f"public/{case.item}.safetensors" for case in public})
    files = {name: (folder / name).read_bytes() for name in names}
    files["items.toml"] = without_hidden(_text(assignment.folder / "items.toml")).encode()
    files["probes.py"] = assignment.probes_source().encode()
    manifest = json.loads(_text(folder / MANIFEST))
    known = {slug for case in public for slug in case.mistakes}
    kept = {
        **{key: manifest[key] for key in ("schema", "assignment", "given", "tolerances", "versions")},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        "hints": {slug: hint for slug, hint in manifest["hints"].items() if slug in known},
    }
    files[MANIFEST] = (json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()
    files |= {f"{name}.py": text.encode() for name, text in assignment.given_sources().items()}
    files[UNTOUCHED] = stubs.encode()
    return {f"fixtures/{assignment.name}/{name}": data for name, data in files.items()}


def _text(path: Path) -> str:
    return _data(path).decode()


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); the handout is made from it.") from error


# What must not leak


def refuse_leaks(files: Mapping[str, bytes], solution: str, fixtures: Fixtures, guides: str = "") -> None:
    """Raise ReleaseError where a file holds a line of an answer or of a guide, or name or numbers of a hidden case."""
    answers = answer_lines(solution) | {line for line in map(str.strip, guides.splitlines()) if len(line) >= LONG_LINE}
    hidden = {case.id.encode() for case in fixtures.cases if case.visibility == "hidden"}
    dotted = [re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(case)) for case in hidden if b"." in case]
    secret = secret_arrays(fixtures)
    for name, data in files.items():
        text = data.decode("utf-8", "replace")
        if name.endswith(".ipynb"):  # without JSON's quotes around each line
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        lines = () if name.startswith("autograder/") else map(str.strip, text.splitlines())  # the engine's are public
        if line := next((line for line in lines if line in answers), ""):
            raise ReleaseError(f"The handout's {name} would hold a line of the solution: {line!r}.")
        words = {*re.findall(rb"[\w-]+", data), *(found for case in dotted for found in case.findall(data))}
        if named := hidden & words:
            raise ReleaseError(f"The handout's {name} would name the hidden case {min(named).decode()}.")
        if ("\ufffd" in text or "\0" in text) and any(array in data for array in secret):  # no numbers are text
            raise ReleaseError(f"The handout's {name} would hold numbers of a hidden case.")


def answer_lines(solution: str) -> set[str]:
    """The lines that stand in an answer and nowhere else in the solution, without their margins."""
    lines: dict[str, set[str]] = {"begin": set(), "inside": set(), "outside": set()}
    for line, place in marked_lines(without_marks(solution)):
        lines[place].add(line.strip())
    return {line for line in lines["inside"] - lines["outside"] if len(line) >= LONG_LINE}


def secret_arrays(fixtures: Fixtures) -> set[bytes]:
    """The bytes of every array of four or more different floats that hidden cases hold and public ones do not.

    Arrays of whole numbers, or of fewer different ones, are left out: those of two runs may well be the same.
    """
    arrays: dict[str, set[bytes]] = {"public": set(), "hidden": set()}
    for case in fixtures.cases:
        for array in (*case.inputs.values(), *(one.array for one in case.expected if one.array is not None)):
            if array.dtype.kind == "f" and (array != np.round(array)).any() and np.unique(array).size >= 4:
                arrays[case.visibility].add(np.ascontiguousarray(array).tobytes())
    return arrays["hidden"] - arrays["public"]


def not_independent(assignment: Assignment) -> tuple[str, ...]:
    """The graded functions whose oracle is the solution itself, in the order of the items.

    `oracle.py` lists them, and whoever writes the oracle takes a name off: NOT_INDEPENDENT = {"softmax", "entropy"}.
    """
    listed: set[str] = set()
    for path in (assignment.folder / "oracle.py", *sorted((assignment.folder / "oracle").glob("*.py"))):
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if ast.unparse(node).startswith((f"{NOT_INDEPENDENT} ", f"{NOT_INDEPENDENT}:")):
                    listed |= {str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return tuple(name for name in assignment.functions if name in listed)


def refuse_release(assignment: Assignment) -> None:
    """Raise ReleaseError where an oracle is the solution itself, or a sentence of the contract is a draft."""
    until = "Until then `autograder release --draft` makes a handout for staff."
    if names := not_independent(assignment):
        them = "it" if len(names) == 1 else "them"
        raise ReleaseError(
            f"The oracle of {', '.join(names)} is the solution itself: a mistake in the solution would be graded as "
            f"right. Write {them} in fixtures/{assignment.name}/oracle.py, as loops and closed forms, and take "
            f"{them} off {NOT_INDEPENDENT}. {until}"
        )
    if drafts := [clause for clause in read_contract(assignment) or () if clause.is_open]:
        others = f" ({len(drafts) - 1} more are like it)" if drafts[1:] else ""
        raise ReleaseError(
            f"{drafts[0].place} has neither mistakes nor a reason why it is not graded{others}. Name one of "
            f"mistakes.py that violates it, or write the reason in place of the list. {until}"
        )


# Zips


def zip_bytes(files: Mapping[str, bytes], folder: str) -> bytes:
    """The files as a zip that unpacks into `folder`, or flat where that is ""; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            member = zipfile.ZipInfo(f"{folder}/{name}" if folder else name, ZIP_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, whose modes the next line means
            member.external_attr = (0o100755 if data.startswith(b"#!") else 0o644) << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def finish_release(assignment: Assignment) -> None:
    """Complete a handout of which nbgrader made the notebook, which must be the one that `release` makes."""
    files = handout_files(assignment)
    name = f"{assignment.module}.ipynb"
    if (assignment.handout / name).read_bytes() != files[name]:
        raise ReleaseError(
            f"nbgrader made another {name} than `autograder release` does: its source notebook is not current. "
            "Run `autograder release`, which renews it."
        )
    write_handout(files, assignment.handout, replace=True)  # nbgrader has emptied the folder


# What students, containers and the doctor find the kit to need


def student_requirements(packages: Iterable[str] = PACKAGES) -> str:
    """What a student's machine needs for an assignment in these packages.

    Of torch whatever installs there, with a word on what grading uses.
    """
    exact = requirements(needed_with(packages)).splitlines()
    pinned = [line for line in exact if _name_of(line) in RANGES]
    lines = [RANGES.get(_name_of(line), line) + "\n" for line in exact]
    return (RANGE_NOTE.format(", ".join(pinned)) if pinned else "") + "".join(lines)


def needed_with(packages: Iterable[str]) -> tuple[str, ...]:
    """What checking and grading need for an assignment in these packages: the engine's own are always among them."""
    left_out = {*PACKAGES} - {*packages} - ENGINE_NEEDS
    others = [name for name in packages if name not in PACKAGES]
    return (*(name for name in STUDENT_REQUIREMENTS if name not in left_out), *others)


def requirements(names: Iterable[str] = STUDENT_REQUIREMENTS) -> str:
    """The packages of these names, with the versions that the installed kit asks for; of others, those installed."""
    entries = (entry.partition(";")[0].strip() for entry in installed_requirements())
    by_name = {_name_of(entry): entry for entry in entries}
    try:
        return "".join(f"{by_name.get(name) or f'{name}=={importlib.metadata.version(name)}'}\n" for name in names)
    except importlib.metadata.PackageNotFoundError as error:
        raise ReleaseError(f"{error.name} is not installed here: python -m pip install {error.name}.") from None


def _name_of(entry: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", entry, maxsplit=1)[0]


def installed_requirements() -> list[str]:
    """The requirements of the installed kit, extras included: `torch==2.13.0`, `pytest>=9.0; extra == "test"`."""
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        raise ReleaseError("The kit is not installed here: python -m pip install -e . in its folder.") from None

"""Solution → handout: stubs, given files, public cases and the checker, as a folder and a zip. Nothing for staff eyes.

What a student receives is put together from a list, never by leaving things out of a copy; then it is searched for the
solution's lines and for hidden cases, and refused if one is found.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from autograder.authoring.source_notebook import BEGIN, END, Notebook, read_extras, released, source_notebook, to_bytes
from autograder.authoring.variants import Variants
from autograder.grading.cases import Case
from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.grading.items import KIT_ROOT, UNTOUCHED, Assignment
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.text import number

POINTS_BEGIN, POINTS_END = "<!-- points:begin -->", "<!-- points:end -->"
TEXTS = ("README.md", "experiments.py")
STUDENT_PACKAGES = ("vocabulary", "sandbox", "submissions", "grading", "checking")
STUDENT_REQUIREMENTS = (
    "torch", "einops", "numpy", "matplotlib", "safetensors", "tqdm", "pytest", "pytest-timeout",
)  # fmt: skip
LONG_LINE = 24  # shorter lines of code, such as `with torch.no_grad():`, may stand anywhere
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows: the same handout gives the same bytes

Files = dict[str, bytes]


def handout_files(assignment: Assignment, folder: Path | None = None) -> Files:
    """The whole handout: path with forward slashes → bytes; `folder` may hold another set of fixtures.

    Raises ReleaseError rather than give anything away.
    """
    folder = folder or assignment.folder
    solution = _text(assignment.solution / f"{assignment.module}.py")
    stubs = stub(solution, assignment)
    test_name = f"test_{assignment.module}.py"
    texts = {
        f"{assignment.module}.py": stubs,
        **{f"{name}.py": text for name, text in assignment.given_sources().items()},
        **{name: _text(assignment.solution / name) for name in (*TEXTS, test_name)},
        "requirements.txt": requirements(),
        **student_engine(),
    }
    texts["README.md"] = with_points(texts["README.md"], assignment)
    files = {name: text.encode() for name, text in texts.items()}
    files |= {name: _data(assignment.solution / name) for name in assignment.also}
    files[f"{assignment.module}.ipynb"] = to_bytes(released(notebook_of(assignment)))
    fixtures = read_fixtures(assignment, folder=folder)
    files |= _public_fixtures(assignment, fixtures, stubs, folder)
    refuse_leaks(files, solution, fixtures, read_extras(assignment).guides)
    return dict(sorted(files.items()))


def student_engine() -> dict[str, str]:
    """The packages that `check` and a notebook's test cells need, whole: path with forward slashes → text."""
    engine = KIT_ROOT / "autograder"
    modules = [engine / "__init__.py", engine / "__main__.py"]
    modules += [path for name in STUDENT_PACKAGES for path in (engine / name).rglob("*.py")]
    return {f"autograder/{path.relative_to(engine).as_posix()}": _text(path) for path in sorted(modules)}


def notebook_of(assignment: Assignment) -> Notebook:
    """nbgrader's source notebook of the assignment, made from what instructors edit."""
    readme = with_points(_text(assignment.solution / "README.md"), assignment)
    module = _text(assignment.solution / f"{assignment.module}.py")
    return source_notebook(assignment, readme, module, read_extras(assignment))


def write_source_notebook(assignment: Assignment) -> Path:
    """Make the source notebook anew, beside what it is made from."""
    path = assignment.solution / f"{assignment.module}.ipynb"
    path.write_bytes(to_bytes(notebook_of(assignment)))
    return path


def write_handout(files: Mapping[str, bytes], target: Path) -> None:
    """Put the files, and nothing else, into `target`, whose old contents go."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=".releasing-"))
    try:
        for name, data in files.items():
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            (staging / name).write_bytes(data)
        staging.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        staging.replace(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def zip_bytes(files: Mapping[str, bytes], folder: str) -> bytes:
    """The files as a zip that unpacks into `folder`, or flat where that is ""; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            member = zipfile.ZipInfo(f"{folder}/{name}" if folder else name, ZIP_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            member.external_attr = (0o100755 if data.startswith(b"#!") else 0o644) << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def write_student_zips(variants: Variants, students: Iterable[str], target: Path) -> int:
    """Write `<student>.zip` for each of them, with the public cases of the student's own variant; how many."""
    assignment = variants.assignment
    zips: dict[Path, bytes] = {}
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for student in students:
        folder = variants.folder_of(student)
        if folder not in zips:
            zips[folder] = zip_bytes(handout_files(assignment, folder), assignment.name)
        write_atomically(target / f"{file_stem(student)}.zip", zips[folder])
        count += 1
    return count


def finish_release(assignment: Assignment) -> None:
    """Complete a handout of which nbgrader made the notebook, which must be the one that `release` makes."""
    files = handout_files(assignment)
    name = f"{assignment.module}.ipynb"
    if (assignment.handout / name).read_bytes() != files[name]:
        raise ReleaseError(
            f"nbgrader made another {name} than `autograder release` does: its source notebook is not current. "
            "Run `autograder release`, which renews it."
        )
    write_handout(files, assignment.handout)


# What students get


def stub(source: str, assignment: Assignment) -> str:
    """The module with each answer replaced by `raise NotImplementedError("<function>")`.

    Raises ReleaseError where markers are not in pairs, stand outside a function, or leave a graded function whole.
    """
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    kept: list[str] = []
    replaced: set[str] = set()
    inside = False
    for position, line in enumerate(source.splitlines(keepends=True), start=1):
        marker = line.strip()
        if marker in (BEGIN, END) and inside == (marker == BEGIN):
            raise ReleaseError(f"Line {position} of {assignment.module}.py: {marker!r} has no partner.")
        if marker == BEGIN:
            name = _function_at(functions, position, assignment.module)
            replaced.add(name)
            kept.append(f'{line[: -len(line.lstrip())]}raise NotImplementedError("{name}")\n')
        if not inside and marker != BEGIN:
            kept.append(line)
        inside = marker == BEGIN or (inside and marker != END)
    if inside:
        raise ReleaseError(f"{assignment.module}.py ends inside an answer: {END!r} is missing.")
    if whole := [name for name in assignment.functions if name not in replaced]:
        raise ReleaseError(f"No answer is marked in {', '.join(whole)}: put {BEGIN!r} and {END!r} around it.")
    return "".join(kept)


def _function_at(functions: Iterable[ast.FunctionDef], line: int, module: str) -> str:
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    if not around:
        raise ReleaseError(f"Line {line} of {module}.py: an answer stands outside every function.")
    return max(around, key=lambda node: node.lineno).name


def with_points(text: str, assignment: Assignment) -> str:
    """The assignment text with the table of items between its two comments."""
    before, begin, rest = text.partition(POINTS_BEGIN)
    _, end, after = rest.partition(POINTS_END)
    if not begin or not end:
        raise ReleaseError(f"The solution's README.md lacks {POINTS_BEGIN} and {POINTS_END} for its table of points.")
    return f"{before}{begin}\n{points_table(assignment)}{end}{after}"


def points_table(assignment: Assignment) -> str:
    """The items as a Markdown table, by function, with sums."""
    lines = ["| item | what is checked | points |", "|---|---|---:|"]
    for function in assignment.functions:
        items = [item for item in assignment.items if item.function == function]
        lines.append(f"| **`{function}`** | | **{number(sum(item.points for item in items))}** |")
        lines += [f"| `{item.id}` | {item.title} | {number(item.points)} |" for item in items]
    lines.append(f"| **all** | | **{number(assignment.max_points)}** |")
    return "\n".join(lines) + "\n"


def requirements(names: Iterable[str] = STUDENT_REQUIREMENTS) -> str:
    """What a student's machine needs, with the versions of pyproject.toml."""
    project = tomllib.loads(_text(KIT_ROOT / "pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    by_name = {re.split(r"[^A-Za-z0-9._-]", entry, maxsplit=1)[0]: entry for entry in wanted}
    return "".join(f"{by_name[name]}\n" for name in names)


def _public_fixtures(assignment: Assignment, fixtures: Fixtures, stubs: str, folder: Path) -> Files:
    """The public cases as a set of fixtures of their own, with a manifest that knows of no other."""
    public = [case for case in (*fixtures.cases, *fixtures.curves) if case.visibility == "public"]
    names = sorted({f"public/{case.item}.safetensors" for case in public})
    files = {name: (folder / name).read_bytes() for name in names}
    files["items.toml"] = _without_hidden(_text(assignment.folder / "items.toml")).encode()
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


def _without_hidden(items: str) -> str:
    return "".join(line for line in items.splitlines(keepends=True) if not re.match(r"hidden\s*=", line))


# What they must not get


def refuse_leaks(files: Mapping[str, bytes], solution: str, fixtures: Fixtures, guides: str = "") -> None:
    """Raise ReleaseError where a file holds a line of an answer or of a guide, or name or numbers of a hidden case."""
    answers = answer_lines(solution) | {line for line in map(str.strip, guides.splitlines()) if len(line) >= LONG_LINE}
    hidden = [case for case in fixtures.cases if case.visibility == "hidden"]
    secret = secret_arrays(fixtures)
    for name, data in files.items():
        lines = (line.strip() for line in _shown_text(name, data).splitlines())
        if found := next((line for line in lines if line in answers), ""):
            raise ReleaseError(f"The handout's {name} would hold a line of the solution: {found!r}.")
        if leaked := next((case.id for case in hidden if _names(case, data)), ""):
            raise ReleaseError(f"The handout's {name} would name the hidden case {leaked}.")
        if any(array in data for array in secret):
            raise ReleaseError(f"The handout's {name} would hold numbers of a hidden case.")


def _shown_text(name: str, data: bytes) -> str:
    """The text that a file shows: of a notebook that of its cells, without JSON's quotes around each line."""
    text = data.decode("utf-8", "replace")
    if not name.endswith(".ipynb"):
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def _names(case: Case, data: bytes) -> bool:
    return re.search(rb"(?<![\w-])" + re.escape(case.id.encode()) + rb"(?![\w-])", data) is not None


def answer_lines(solution: str) -> set[str]:
    """The lines that stand in an answer and nowhere else in the solution, without their margins."""
    inside = False
    lines: set[str] = set()
    outside: set[str] = set()
    for line in solution.splitlines():
        marker = line.strip()
        inside = marker == BEGIN or (inside and marker != END)
        (lines if inside else outside).add(marker)
    return {line for line in lines - outside if len(line) >= LONG_LINE and line != BEGIN}


def secret_arrays(fixtures: Fixtures) -> set[bytes]:
    """The bytes of every array of 4 or more floats that hidden cases hold and public ones do not.

    Arrays of whole numbers are left out: the epochs of two runs may well be the same.
    """
    public, hidden = (
        {
            np.ascontiguousarray(array).tobytes()
            for case in fixtures.cases
            if case.visibility == visibility
            for array in (*case.inputs.values(), *(e.array for e in case.expected if e.array is not None))
            if array.dtype.kind == "f" and array.size >= 4 and (array != np.round(array)).any()
        }
        for visibility in ("public", "hidden")
    )
    return hidden - public


def _text(path: Path) -> str:
    return _data(path).decode()


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); the handout is made from it.") from error

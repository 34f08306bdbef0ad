"""Solution → handout: stubs, given files, public cases and the checker, as a folder and a zip. Nothing for staff eyes.

What a student receives is put together from a list, never by leaving things out of a copy; then it is searched for the
solution's lines and for hidden cases, and refused if one is found.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.authoring.fixtures.variants import Variants
from autograder.authoring.handout.leaks import refuse_leaks
from autograder.authoring.handout.requirements import student_requirements
from autograder.authoring.handout.source_notebook import Notebook, read_extras, released, source_notebook, to_bytes
from autograder.authoring.handout.stubs import stub
from autograder.authoring.handout.texts import TEST_FILE, with_installation, with_points, without_hidden
from autograder.authoring.marks import without_marks
from autograder.checking.handout import with_records, write_handout
from autograder.grading.counterexamples.rows import FILE as ROWS
from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.grading.items import UNTOUCHED, Assignment
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.places import ENGINE

OPTIONAL = ("experiments.py",)
STUDENT_PACKAGES = ("vocabulary", "sandbox", "submissions", "grading", "checking")
GIT_ATTRIBUTES = ".gitattributes"
ATTRIBUTES = """\
# Text with the line ends that it was made with, on every system; pictures and tensors byte for byte.
* text=auto eol=lf
*.safetensors binary
*.png binary
*.zip binary
"""
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
    own_tests = assignment.solution / test_name
    texts = {
        f"{assignment.module}.py": stubs,
        **{f"{name}.py": text for name, text in assignment.given_sources().items()},
        "README.md": _text(assignment.solution / "README.md"),
        **{name: _text(assignment.solution / name) for name in OPTIONAL if (assignment.solution / name).is_file()},
        test_name: _text(own_tests) if own_tests.is_file() else TEST_FILE,
        "requirements.txt": student_requirements(assignment.packages),
        GIT_ATTRIBUTES: ATTRIBUTES,
        **student_engine(),
    }
    texts["README.md"] = with_installation(with_points(texts["README.md"], assignment), assignment)
    files = {name: text.encode() for name, text in texts.items()}
    files |= {name: _data(assignment.solution / name) for name in assignment.also}
    files[f"{assignment.module}.ipynb"] = to_bytes(released(notebook_of(assignment)))
    fixtures = read_fixtures(assignment, folder=folder)
    files |= _public_fixtures(assignment, fixtures, stubs, folder)
    refuse_leaks(files, solution, fixtures, read_extras(assignment).guides)
    return with_records(files)


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


def student_zips(variants: Variants, students: Iterable[str]) -> Files:
    """`<student>.zip` for each of them, with the public cases of the student's own variant."""
    folders = {f"{file_stem(student)}.zip": variants.folder_of(student) for student in students}
    name = variants.assignment.name
    zips = {folder: zip_bytes(handout_files(variants.assignment, folder), name) for folder in set(folders.values())}
    return {student: zips[folder] for student, folder in folders.items()}


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
    if (assignment.folder / ROWS).is_file():
        files[ROWS] = _text(assignment.folder / ROWS).encode()
    return {f"fixtures/{assignment.name}/{name}": data for name, data in files.items()}


def _text(path: Path) -> str:
    return _data(path).decode()


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); the handout is made from it.") from error

"""The authors' guide, followed block by block on a copy of the kit: what it says happens, happens.

The copy holds one function's cases and mistakes alone, so that it is quick to make; they are those of the kit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

import pytest
from places import KIT
from toy_kit import autograder, change

from autograder.authoring.catalogue import without_marks

GUIDE = KIT / "fixtures" / "README.md"
BLOCKS = re.findall(
    r"^```(?:python|toml)\n(.*?)^```\n",
    GUIDE.read_text(encoding="utf-8").partition("\n## A case\n")[2],
    re.DOTALL | re.MULTILINE,
)
ANSWERS = ("submissions", "right_answers")  # which need the functions that the copy goes without
EXAM = "EXAM = Exam.of(oracle, REWARD, DELTAS, LOG_PROBS, LOSS, KL)\n"
MADE = "Oracle and solution agree; every known mistake is separated."


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kit, reduced to compute_kl_penalty."""
    root = tmp_path_factory.mktemp("adding")
    for name, without in (("autograder", ()), ("solution", ()), ("fixtures/policy_gradient", ANSWERS)):
        shutil.copytree(KIT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", *without))
    shutil.copy(KIT / "pyproject.toml", root)
    folder = root / "fixtures/policy_gradient"
    text = (folder / "items.toml").read_text(encoding="utf-8")
    head, *items = re.split(r"(?=^\[\[item\]\])", text, flags=re.MULTILINE)
    kept = [item for item in items if 'function = "compute_kl_penalty"' in item]
    (folder / "items.toml").write_text(head + "".join(kept), encoding="utf-8")
    shutil.rmtree(folder / "cases")
    change(folder / "functions.py", EXAM, "EXAM = Exam.of(oracle, KL)\n")
    with (folder / "oracle.py").open("a", encoding="utf-8") as oracle:
        oracle.write("\n\nBRANCHES.clear()  # they are of items that are gone\n")
    for module in ("reward", "deltas", "log_probs", "loss", "loop"):
        change(folder / "mistakes" / "__init__.py", f"    {module},\n", "")
    drop_clauses(folder / "contract.toml")
    module = root / "solution/policy_gradient/policy_gradient.py"
    text = without_marks(module.read_text(encoding="utf-8"))  # what is not graded needs no mark
    module.write_text(text, encoding="utf-8")
    return root


def drop_clauses(path: Path) -> None:
    """Leave of the contract only what is about compute_kl_penalty."""
    head, *tables = re.split(r"(?=^\[)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (kept,) = (one for one in tables if one.startswith("[compute_kl_penalty]"))
    path.write_text(head + kept, encoding="utf-8")


def insert(kit: Path, name: str, before: str, block: str) -> None:
    """Put a block of the guide in front of a text that stands in the file once; at its end where that is empty."""
    path = kit / name
    if not before:
        path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + f"\n\n\n{block}", encoding="utf-8")
        return
    change(path, before, f"{block}{before}")


def regenerated(kit: Path) -> None:
    done = autograder(kit, "fixtures", "regenerate")
    assert done.stderr == ""
    assert done.returncode == 0
    assert MADE in done.stdout


def refused(kit: Path, sentence: str, verb: Sequence[str] = ("fixtures", "regenerate")) -> None:
    done = autograder(kit, *verb)
    assert done.returncode == 3
    assert sentence in " ".join(done.stderr.split())


def examined(kit: Path, *, fails: bool) -> str:
    """What the exam prints."""
    done: subprocess.CompletedProcess[str] = autograder(kit, "selfcheck", "--jobs", "2")
    assert done.returncode == (3 if fails else 0), done.stdout + done.stderr
    return done.stdout


def test_the_guide_has_the_blocks_that_are_followed_here() -> None:
    assert len(BLOCKS) == 12


FOLDER = "fixtures/policy_gradient/"
STEP = "    "  # blocks stand at the margin in the guide


@pytest.mark.long
def test_guide_followed_step_by_step_makes_an_exam(kit: Path) -> None:
    case, listed, mistake, item, surprise, declared, exam, oracle, solution, mistakes, clauses, marked = BLOCKS
    insert(kit, FOLDER + "functions.py", '        "middling": policies', indent(case, 2 * STEP))
    before = listed.replace(', "narrow"', "")
    change(kit / FOLDER / "items.toml", before, listed.replace("narrow", "narow"))
    refused(kit, "kl-values names the draw 'narow'; one of usual, near, narrow")
    change(kit / FOLDER / "items.toml", listed.replace("narrow", "narow"), listed)

    mistake = indent(mistake.rstrip() + ",\n", STEP)
    change(
        kit / FOLDER / "mistakes/kl.py",
        "MISTAKES: tuple[Mistake, ...] = (\n",
        f"MISTAKES: tuple[Mistake, ...] = (\n{mistake}",
    )
    harmless = mistake.replace("max=0.7", "max=1000.0")
    change(kit / FOLDER / "mistakes/kl.py", mistake, harmless)
    refused(kit, "No case separates these mistakes from a right answer: ratio-cut-at-two.")
    change(kit / FOLDER / "mistakes/kl.py", harmless, mistake)

    insert(kit, FOLDER + "items.toml", "", item)
    regenerated(kit)

    insert(kit, FOLDER + "items.toml", "", surprise)
    change(kit / FOLDER / "functions.py", "EXAM = Exam.of(oracle, KL)\n", f"{declared}\n{exam}")
    insert(kit, FOLDER + "oracle.py", "", oracle)
    refused(kit, "the solution does not define compute_surprise as a")
    module = "solution/policy_gradient/policy_gradient.py"
    insert(kit, module, "", re.sub(r" *### (BEGIN|END) SOLUTION\n", "", solution))
    refused(kit, "No answer is marked in compute_surprise", ("release",))
    path = kit / module
    path.write_text(
        path.read_text(encoding="utf-8").rpartition("\n\n\ndef compute_surprise")[0] + "\n", encoding="utf-8"
    )
    insert(kit, module, "", solution)
    regenerated(kit)
    printed = examined(kit, fails=True)
    assert "The handout is not what release makes" in printed
    assert "No mistake is known of compute_surprise: who gets one wrong reads its item's hint alone." in printed
    assert "The assignment's text does not name compute_surprise." in printed
    assert "no clause of compute_surprise quotes: 'Return what the responses to each prompt cost in nats" in printed

    (kit / FOLDER / "mistakes/surprise.py").write_text(mistakes, encoding="utf-8")
    change(kit / FOLDER / "mistakes/__init__.py", "loss, reward\n", "loss, reward, surprise\n")
    change(kit / FOLDER / "mistakes/__init__.py", "    kl,\n", "    kl,\n    surprise,\n")
    text = kit / "solution/policy_gradient/README.md"
    text.write_text(text.read_text(encoding="utf-8") + "\n## `compute_surprise`\n", encoding="utf-8")
    insert(kit, FOLDER + "contract.toml", "", clauses)
    insert(kit, module, marked.splitlines()[1], marked.splitlines(keepends=True)[0])
    regenerated(kit)
    done = autograder(kit, "release")
    assert (done.stderr, done.returncode) == ("", 0)
    printed = examined(kit, fails=False)
    assert "compute_surprise" not in printed
    row = next(row for row in printed.splitlines() if row.split()[:1] == ["surprise"])
    assert row.split()[1:] == ["3", "3", "3", "0", "0", "0"]

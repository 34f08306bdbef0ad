"""A term of sixty students on five platforms: after each step, nobody's grade has changed but those announced."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from in_process import autograder_in_process
from places import KIT
from processes import wait_for

pytestmark = pytest.mark.long

NAMES = """
Ada Lovelace|Zoë Müller|José Núñez|Nguyễn Văn An|Łukasz Żak|İpek Şahin
Ελένη Παππά|Γιώργος Νίκου|Μαρία Αγγέλου|Ξένια Ψαρρά|Όλγα Ζώη|Άννα Ήβη
Ольга Петрова|Їжак Ґава|Алексей Ёлкин|Љубица Ћирић|Цвета Йорданова|Наталія Щука
مريم حسن|علی رضایی|خدیجة الزهراء|یوسف کریمی|لیلى بن عمر|عمر أحمد
דוד כהן|רחל לוי|שָׂרָה אברהם|יוסף מזרחי|מרים פרץ|נֹעָה גל
अनिता शर्मा|राजेश कुमार|प्रिया सिंह|विष्णु देव|क्षितिज जोशी|ज्ञानेश पाटिल
สมชาย ใจดี|กุ้งนาง ศรีสุข|น้ำฝน แก้ว|ปิติ มั่นคง|อรุณี ทองดี|วิไล รุ่งเรือง
王小明|李雷|張偉|欧阳娜娜|陈静|赵敏
山田太郎|鈴木花子|がっきー ゆい|ガガ|佐藤健|髙橋一生
김민준|이서연|박지훈|최수빈|정하윤|강도현
"""
STUDENTS = tuple(unicodedata.normalize("NFC", name) for line in NAMES.split("\n") for name in line.split("|") if name)
SAMPLES = KIT / "fixtures" / "bandits" / "submissions"
GOLDEN = KIT / "tests" / "golden" / "bandits"
KINDS = tuple(sorted(path.name for path in SAMPLES.iterdir() if (path / "bandits.py").is_file()))
DEADLINE = "2027-03-12T23:59:00"


def kind_of(name: str) -> str:
    """Which of the sample class a student's work is a copy of."""
    return KINDS[STUDENTS.index(name) % len(KINDS)]


def word(name: str) -> str:
    """A name as Canvas writes it into the name of a file: what is no letter, mark, digit or connector is left out."""
    kept = [
        one for one in name.lower() if unicodedata.category(one)[0] in "LM" or unicodedata.category(one) in ("Nd", "Pc")
    ]
    return "".join(kept)


@dataclass
class Term:
    """A course, its downloads, and what its grades were after the last step."""

    folder: Path
    grades: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(self, *words: str | Path, code: int = 0) -> str:
        """What a command of staff prints, on either stream."""
        done = autograder_in_process(self.folder, *words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def step(self, changed: AbstractSet[str] = frozenset()) -> None:
        """Check that the grades of nobody but those announced have changed since the last step."""
        now = self.held()
        others = {name for name in now.keys() | self.grades.keys() if now.get(name) != self.grades.get(name)}
        assert others == changed
        self.grades = now

    def finals(self, changed: AbstractSet[str], rule: Callable[[float], float]) -> None:
        """Check that these have the final grade that the rule makes of their points, and nobody else another."""
        self.grades = now = self.held()
        for student, (points, _, final) in now.items():
            assert float(final) == (rule(float(points)) if student in changed else float(points)), student

    def points(self, student: str, item: str) -> float:
        """What a student earned of an item."""
        with (self.folder / "grades" / "grades.csv").open(encoding="utf-8", newline="") as stream:
            return next(float(row[item]) for row in csv.DictReader(stream) if row["student"] == student)

    def csv(self, name: str, *rows: str) -> None:
        """Write an overrides file."""
        (self.folder / name).write_text("\n".join(["student,item,points,comment", *rows]) + "\n", encoding="utf-8")

    def held(self) -> dict[str, tuple[str, ...]]:
        """Points, status and final grade of each student, as the gradebook and the reports say them alike."""
        with (self.folder / "grades" / "grades.csv").open(encoding="utf-8", newline="") as stream:
            rows = {row["student"]: row for row in csv.DictReader(stream)}
        reports = [json.loads(path.read_bytes()) for path in (self.folder / "grades" / "reports").glob("*.json")]
        assert {one["student"] for one in reports} >= set(rows)
        return {name: (row["points"], row["status"], row.get("final", "")) for name, row in rows.items()}


def downloads(folder: Path) -> dict[str, str]:
    """Twelve students on each of five platforms; the names under which the kit knows them, and whose they are."""
    known: dict[str, str] = {}
    classes = [STUDENTS[start::5] for start in range(5)]
    for number, name in enumerate(classes[0], 1001):
        put(folder / "canvas" / f"{word(name)}_{number}_{number + 500}_bandits.py", name)
        known[f"{word(name)}_{number}"] = name
    for number, name in enumerate(classes[1], 2001):
        put(folder / "moodle" / f"{name}_{number}_assignsubmission_file" / "bandits.py", name)
        known[f"{name}_{number}"] = name
    lines = []
    for number, name in enumerate(classes[2], 1):
        put(folder / "gradescope" / f"submission_{number}" / "bandits.py", name)
        lines += [f"submission_{number}:", "  :submitters:", f"  - :name: {json.dumps(name)}", f"    :sid: G{number}"]
        lines += [f"  :created_at: 2027-03-{12 + number % 2} 20:00:00 Z"]
        known[f"{name}_G{number}"] = name
    (folder / "gradescope" / "submission_metadata.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for number, name in enumerate(classes[3], 1):
        place = folder / "submitted" / f"nb{number:02}" / "bandits"
        put(place / "bandits.py", name)
        (place / "timestamp.txt").write_text(f"2027-03-{12 + number % 2} 20:00:00 UTC", encoding="utf-8")
        known[f"nb{number:02}"] = name
    for name in classes[4]:
        put(folder / "plain" / name / "bandits.py", name)
        known[name] = name
    return known


def put(path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SAMPLES / kind_of(name) / "bandits.py", path)


def of_kind(known: dict[str, str], kind: str) -> set[str]:
    """Everybody whose work is a copy of that of `kind`, as the kit calls them."""
    return {student for student, name in known.items() if kind_of(name) == kind}


def earned(kind: str) -> float:
    report = json.loads((GOLDEN / f"{kind}.json").read_bytes())
    return float(report["points"])


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """A course of one's own, whose class of sixty has handed in on five platforms."""
    for part in ("fixtures", "solution", "handout"):
        for name in ("bandits", "policy_gradient_theory"):
            shutil.copytree(KIT / part / name, tmp_path / "course" / part / name)
    return Term(tmp_path / "course")


def test_nobodys_grade_changes_unannounced_through_a_term(term: Term) -> None:
    known = downloads(term.folder)
    places = ("canvas", "moodle", "gradescope", "submitted", "plain")
    grade = ("grade", *places, "--out", "grades")
    everybody = set(known)

    term.run(*grade)
    term.step(everybody)
    assert {student: float(row[0]) for student, row in term.grades.items()} == {
        student: earned(kind_of(name)) for student, name in known.items()
    }
    assert "60 of them unchanged" in term.run(*grade)
    term.step()

    # late work of three, of whom one hands in anew
    late = sorted(of_kind(known, "chidi") & set(STUDENTS[4::5]))[:1]
    shutil.copy(SAMPLES / "ada" / "bandits.py", term.folder / "plain" / late[0] / "bandits.py")
    assert f"Handed in anew: {late[0]} 0 → 100" in term.run(*grade)
    term.step(set(late))

    # late days: two platforms say in the download who was late, staff say it of the others
    policy = f'timezone = "UTC"\n[late]\ndeadline = {DEADLINE}\nper_day = 10\n'
    (term.folder / "policy.toml").write_text(policy, encoding="utf-8")
    on_paper = [student for student in known if student.rpartition("_")[2].isdecimal() or student in STUDENTS]
    rows = [f"{student},2027-03-1{2 + (student in late)} 12:00" for student in on_paper]
    (term.folder / "times.csv").write_text("\n".join(["student,submitted", *rows]) + "\n", encoding="utf-8")
    rules = ("gradebook", "grades", "--policy", "policy.toml", "--timestamps", "times.csv")
    downloaded = {student for student in known if student not in on_paper and int(student[-2:].strip("bG")) % 2}
    are_late = {student for student in downloaded | {*late} if float(term.grades[student][0])}
    assert f"Of 60 grades {len(are_late)} change" in term.run(*rules, code=2)
    term.step()
    term.run(*rules, "--replace")
    term.finals(are_late, lambda points: round(points * 0.9, 2))
    term.run(*grade)
    term.step()

    # two teaching assistants decide
    first, second = sorted(of_kind(known, "dana"))[:2]
    term.csv("anna.csv", f'"{first}",ucb-values,11,read again')
    term.csv("ben.csv", f'"{second}",ucb-values,4,half', f'"{first}",ucb-values,0,no')
    term.run("gradebook", "grades", "--overrides", "anna.csv", "--replace")
    term.step({first})
    assert f"{first}, ucb-values has 11 points by" in term.run("gradebook", "grades", "--overrides", "ben.csv", code=2)
    term.step()
    term.csv("ben.csv", f'"{second}",ucb-values,4,half')
    term.run("gradebook", "grades", "--overrides", "ben.csv", "--replace")
    term.step({second})

    # a part of the class, and what would change grades that nobody asked about
    term.run("grade", "moodle", "plain", "--out", "grades")
    term.step()
    another = ("grade", *places, "--out", "grades", "--assignment", "policy_gradient_theory")
    assert "holds grades of" in term.run(*another, code=2)
    (term.folder / "secret").write_text("0123456789abcdef0123456789abcdef")
    spring = ("--term", "spring", "--secret-file", "secret", "--out", "../spring")
    term.run("fixtures", "regenerate", "--assignment", "bandits", *spring)
    assert "Nothing was written" in term.run(*grade, "--fixtures", "../spring", code=2)  # other hidden numbers
    items = term.folder / "fixtures" / "bandits" / "items.toml"
    kept = items.read_bytes()
    items.write_bytes(kept.replace(b"points = 11", b"points = eleven", 1))
    assert "items.toml" in term.run(*grade, code=3)
    items.write_bytes(kept)
    term.step()

    # a run that is killed when it has graded some, and what it leaves
    command = [sys.executable, "-m", "autograder", *grade, "--fresh", "--jobs", "1"]
    with subprocess.Popen(command, cwd=term.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        wait_for(lambda: len(list((term.folder / "grades" / ".staged" / "reports").glob("*.json"))) > 5)
        running.kill()
    term.step()
    term.run(*grade)
    term.step()

    # an item is worth nothing any more, and grades go back to where they came from
    (term.folder / "policy.toml").write_text(policy + '[items.ucb-untried]\ncancelled = "everybody gets it"\n')
    failed = {student for student in known if term.points(student, "ucb-untried") < 8}
    assert f"Of 60 grades {len(failed)} change" in term.run("gradebook", "grades", "--policy", "policy.toml", code=2)
    term.step()
    term.run("gradebook", "grades", "--policy", "policy.toml", "--replace")
    term.step(failed)
    on_canvas = [student for student in known if student.endswith(tuple(map(str, range(1001, 1013))))]
    lines = [f"{known[student]},{student[-4:]},,,A," for student in on_canvas]
    table = "\n".join(
        ["Student,ID,SIS User ID,SIS Login ID,Section,Bandits (7)", "    Points Possible,,,,,100", *lines]
    )
    (term.folder / "canvas.csv").write_text(table + "\n", encoding="utf-8")
    column = ("--assignment-column", "Bandits (7)", "--out", "back.csv")
    term.run("export", "canvas", "grades", "--gradebook", "canvas.csv", *column)
    with (term.folder / "back.csv").open(encoding="utf-8-sig", newline="") as stream:
        back = {row["ID"]: float(row["Bandits (7)"]) for row in list(csv.DictReader(stream))[1:]}
    assert back == {student[-4:]: float(term.grades[student][2]) for student in on_canvas}
    term.step()

"""Folders of classes as platforms give them for download, and who is graded with what there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hand_ins import IPYNB, MODULE, PY, notebook, put_all


def content(name: str) -> str:
    """What a file of that name holds, unless it is said: work that tells which file it is."""
    text = f"x = {name!r}\n"
    return notebook(f"{text}def f():\n    return x") if name.endswith(".ipynb") else text


def put(folder: Path, names: Iterable[str], texts: Mapping[str, str] = {}) -> Path:
    """Files with their usual contents, and others with theirs."""
    return put_all(folder, {**{name: content(name) for name in names}, **texts})


class Download(NamedTuple):
    """Files of a download, each with who is graded with it (` + ` between two); the rest as `Gathered` has it.

    texts   what files hold where that matters
    notes   what the notes of a student say, in parts; [] if they say nothing
    """

    files: Mapping[str, str]
    roster: str = ""
    texts: Mapping[str, str] = {}
    deadline: datetime | None = None
    notes: Mapping[str, Sequence[str]] = {}
    refused: Sequence[str] = ()
    ignored: Sequence[str] = ()
    absent: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def students(self) -> dict[str, str]:
        return {name: file for file, names in self.files.items() for name in names.split(" + ") if name}


def clones(start: str, *names: str, **students: str) -> dict[str, str]:
    """The files of clones, each named for its student or for the end of its folder's name."""
    graded = {f"{start}{name}/{PY}": student for name, student in [*zip(names, names, strict=True), *students.items()]}
    return graded | {f"{start}{name}/.git/HEAD": "" for name in (*names, *students)}


METADATA = """\
submission_1:
  :submitters:
  - :name: Ana Diaz
    :sid: U1
    :email: ana@x.edu
  :created_at: 2027-03-01 22:10:11.123456000 Z
  :score: 12.0
  :results: &1
    :tests:
    - :name: "tricky: \\"x\\""
  :history:
  - :created_at: 2027-02-01 00:00:00 Z
    :results: *1
submission_2:
  :submitters:
  - :name: مريم
    :email: maryam@x.edu
  - :name: 'O''Brien, Sean'
    :sid: '31'
    :email: sean@x.edu
  :created_at: 2027-03-02 01:00:00 -08:00
"""
TWO_ACCOUNTS = METADATA.replace("- :name: مريم\n    :email: maryam@x.edu", "- :name: Ana\n    :email: eve@x.edu")
NAMESAKES = "".join(f"submission_{at}:\n  :submitters:\n  - :name: Ana\n" for at in (1, 2))


def scope(metadata: str, *students: str, roster: str = "", **more: Any) -> Download:
    """Gradescope's export: submissions 1, 2 and so on, and who is graded with each."""
    files = {f"submission_{at}/{PY}": student for at, student in enumerate(students, 1)}
    return Download(files, roster, {"submission_metadata.yml": metadata}, **more)


def attempt(username: str, when: str, name: str = "") -> str:
    return f"HW5_GRPO_{username}_attempt_2027-03-02-{when}" + (f"_{name}" if name else ".txt")


def about(name: str, username: str) -> str:
    return f"Name: {name} ({username})\nAssignment: HW5 GRPO\nDate Submitted: Tuesday, March 2, 2027\n"


BLACKBOARD = Download(
    {
        attempt("adiaz1", "10-00-00", PY): "",
        attempt("adiaz1", "11-30-00", PY): "adiaz1",
        attempt("o_hara", "09-00-00", "Copy of hw.py"): "o_hara",
    },
    texts={
        **{attempt("adiaz1", clock): about("Ana Diaz", "adiaz1") for clock in ("10-00-00", "11-30-00")},
        attempt("o_hara", "09-00-00"): about("Sean O'Hara", "o_hara"),
    },
    notes={"adiaz1": ["not graded: HW5_GRPO_adiaz1_attempt_2027-03-02-10-00-00"]},
)
FORGED = attempt("eve", "12-00-00", f"HW5_GRPO_adiaz1_attempt_2027-03-03-00-00-00_{PY}")
FORGED_TEXT = {attempt("eve", "12-00-00"): about("Ana Diaz", "adiaz1")}
BRIGHTSPACE = {
    f"71001-500 - Ana Diaz - Mar 2, 2027 958 AM/{PY}": "",
    f"71001-500 - Ana Diaz - Mar 2, 2027 1158 PM/{PY}": "Ana Diaz_71001",
    "71002-500 - Jean-Luc Le Roux - Mar 1, 2027 1205 AM/work.py": "Jean-Luc Le Roux_71002",
}
LATEST = f"diazana_1001_580_{MODULE}-1.py"
LATE = "handed in late, at 2027-03-02 "

DOWNLOADS = {
    # Canvas: the name of a file claims nobody's id; of several ways to read a name the roster knows which
    "two forms of one letter": Download(
        {f"ju\u0308rgen_1_5_{PY}": "j\u00fcrgen_1", f"j\u00fcrgen_1_6_{IPYNB}": "", f"ben_2_7_{PY}": "ben_2"}
    ),
    "dates": Download(
        {
            f"ada_104711_5000311_{PY}": "ada_104711",
            f"ben_98_5000312_{PY}": "ben_98",
            "cy_104713_5000313_2027_03_01 answers.py": "cy_104713",
            "dana_LATE_104714_5000314_1_2_3.py": "dana_104714",
            f"lab_3_104715_5000315_{PY}": "lab_3_104715",
        },
        notes={"dana_104714": ["handed in late"]},
    ),
    "known by a roster": Download({"eve_666_7_8_work.py": "Eve", "ana_12_34_56_x.py": "Ana"}, "Eve 666, Ana 12"),
    "groups": Download(
        {f"redteam_1001_555_{PY}": "Ana + Ben", f"blue_team_LATE_1003_556_{MODULE}-3.py": "Cleo"},
        "Ana 1001 red, Ben 1002 red, Cleo 1003",
    ),
    "the latest of a group": Download({f"a_1_5_{PY}": "", f"b_2_9_{PY}": "Ada + Ben"}, "Ada 1 red, Ben 2 red"),
    "latest on time": Download(
        {f"diazana_1001_555_{PY}": "", LATEST: "diazana_1001", f"diazana_LATE_1001_999_{MODULE}-2.py": ""},
        notes={"diazana_1001": [f"{LATEST} counts, the latest that was on time; not graded: ", "_555_", "_999_"]},
    ),
    "two of one id": Download(
        {f"ana_1_5_{PY}": "", f"eve_1_6_{PY}": "", f"ben_2_7_{PY}": "ben_2"},
        refused=["ana_1 and eve_1 both claim the id 1 of Canvas: say in a roster who is who, or rename one."],
    ),
    "absent and unknown": Download(
        {f"diazana_1001_555_{PY}": "Ana", f"okoroben_1002_556_{PY}": "okoroben_1002"},
        "Ana 1001, Ben 77, Cleo 78",
        absent=["Ben", "Cleo"],
        unknown=["okoroben_1002"],
    ),
    # Moodle: no group has no number
    "moodle groups": Download(
        {f"{name}_assignsubmission_file/{PY}": name for name in ("Gruppe A_77", "Default group")},
        texts={"Default group_assignsubmission_onlinetext/onlinetext.html": ""},
    ),
    "a moodle name in another": Download(
        {f"Eve_666_assignsubmission_file_Ana_12345_assignsubmission_file_{PY}": "Eve_666"}
    ),
    **{
        f"moodle folders{end}": Download(
            {
                f"Ana Diaz_12345_assignsubmission_file{end}/{PY}": "Ana Diaz_12345",
                f"王小明_12346_assignsubmission_file{end}/w/{IPYNB}": "王小明_12346",
                f"Ana Diaz_12345_assignsubmission_onlinetext{end}/onlinetext.html": "",
                "grades.csv": "",
            },
            ignored=["grades.csv"],
        )
        for end in ("", "_")
    },
    "two of one moodle id": Download(
        {f"{name}_assignsubmission_file/{PY}": name * (name == "Ben_2") for name in ("Ana_1", "Eve_1", "Ben_2")},
        refused=["Ana_1 and Eve_1 both claim the id 1 of Moodle: say in a roster who is who, or rename one."],
    ),
    "a moodle name that is a number": Download(
        {f"{name}_assignsubmission_file/{PY}": name for name in ("1", "Ana_1", "Ben_2")}
    ),
    # Blackboard and Brightspace
    "blackboard": BLACKBOARD,
    "forged blackboard name": BLACKBOARD._replace(
        files=BLACKBOARD.files | {FORGED: "HW5_GRPO_eve"}, texts=BLACKBOARD.texts | FORGED_TEXT
    ),
    **{
        f"brightspace{mark}": Download(
            {name.replace("/", mark): student for name, student in BRIGHTSPACE.items()} | {"index.html": ""},
            ignored=["index.html"],
        )
        for mark in ("/", " - ")
    },
    "brightspace numbers the other way round": Download(
        {f"500-7100{at} - Ana - Mar 2, 2027 958 AM/{PY}": f"Ana_7100{at}" for at in (1, 2)}
    ),
    # Gradescope
    "gradescope": scope(
        METADATA,
        *("Ana Diaz_U1", "مريم_maryam@x.edu + O'Brien, Sean_31", "submission_3"),
        deadline=datetime(2027, 3, 2, 8, 0, tzinfo=UTC),
        notes={"Ana Diaz_U1": [], "O'Brien, Sean_31": [f"{LATE}09:00 UTC"]},
    ),
    "gradescope namesakes": scope(NAMESAKES, "Ana_submission_1", "Ana_submission_2"),
    "two accounts of one student": scope(
        TWO_ACCOUNTS,
        *("Ana", "Sean"),
        roster="Ana U1, Sean 31",
        refused=[
            "Ana_eve@x.edu bears the name of Ana, whom the roster knows by another id: say in the roster who it is."
        ],
    ),
    "metadata in a submission": Download(
        {f"ada/{PY}": "ada", f"eve/{PY}": "eve", f"eve/submission_1/{PY}": ""},
        texts={"eve/submission_metadata.yml": METADATA},
    ),
    # GitHub: usernames begin behind what most share, which hyphens, the module's name or a roster say
    "github": Download(clones("hw5-", "ada", "ben") | {"hw5-cleo.py": "hw5-cleo"}),
    "github with the module's name": Download(clones("cs336-policy-gradient-", "ada", "ben-k")),
    "github, not clear": Download(clones("", "policy-gradient-hw5-ada", "policy-gradient-hw5-ben")),
    "github and a roster": Download(clones("hw5-ann-", lee="Ada", kim="Ben"), "Ada ann-lee, Ben ann-kim"),
    "one clone": Download({f"s-1/{PY}": "s-1"} | clones("", "s-2")),
    # Plain folders and files, whatever a student put into them; nbgrader's
    "plain and a roster": Download({f"u1/{PY}": "Ada", "u2.py": "Ольга"}, "Ada u1, Ольга u2"),
    "one timestamp of one's own": Download(
        {f"eve/a/{PY}": "eve", f"ben/w/v/{PY}": "ben", "goran.py": "goran"},
        texts={"eve/a/timestamp.txt": "", "ben/notes/x.txt": ""},
    ),
    "nbgrader": Download(
        {f"ada/ps5/{IPYNB}": "ada", f"ben/ps5/{PY}": "ben"},
        texts={
            f"{student}/ps5/timestamp.txt": f"2027-03-02 15:58:23.948203 {zone}"
            for student, zone in (("ada", "America/Los_Angeles"), ("ben", "UTC"))
        },
        deadline=datetime(2027, 3, 2, 22, 0, tzinfo=UTC),
        notes={"ada": [f"{LATE}23:58 UTC"], "ben": []},
    ),
    "dotted names": Download(
        {f"ada/{PY}": "ada", f".eve/{PY}": "", f".ipynb_checkpoints/{IPYNB}": "", ".bob/x.txt": ""},
        texts={".git/config": "", ".DS_Store": ""},
        ignored=[".bob"],
        refused=[".eve is not graded, since its name begins with a dot: rename it if it is somebody's work."],
    ),
}

"""Exports of the sample class to the byte, their formats against schemas, and names that try to do harm on the way.

After a change that is meant to alter an export, renew the golden files and read the difference:

    python tests/support/golden.py
"""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from formats import validate
from golden import RENEW, difference
from golden_exports import COLUMN, FOLDER, exports, sample_class
from sample_reports import NASTY_NAMES, item, not_graded, report, write_grades

from autograder.gradebook.final_grades import Adjustment
from autograder.gradebook.grades_folder import read_grades
from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms import containers
from autograder.platforms.gradebooks import canvas_csv, feedback_folder, moodle_csv, plain_csv
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.files import Table
from autograder.vocabulary.report import CaseResult
from autograder.vocabulary.text import INVISIBLE, reads_as_formula


def in_short(golden: str, now: str) -> str:
    """The lines that differ, none longer than a screen; of JSON, each value counts as a line."""
    split = [text.replace(', "', ',\n"') for text in (golden, now)]
    return "\n".join(line[:160] for line in difference(*split).splitlines())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return exports(tmp_path_factory.mktemp("feedback"))


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_export_of_the_sample_class_is_golden(made: dict[str, str], name: str) -> None:
    golden = (FOLDER / name).read_bytes()
    same = made[name].encode() == golden
    assert same, f"{RENEW}\n{in_short(golden.decode(), made[name])}"


def test_golden_files_are_those_of_the_exports(made: dict[str, str]) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(made)


# The folder of grades


def test_a_final_grade_is_the_one_that_platforms_get(tmp_path: Path) -> None:
    path = write_grades(tmp_path, report("ada"), report("ben")) / "reports"
    for student, final, reason in (("ada", 3.2, "2 days late"), ("ben", None, "excused")):
        data = json.loads((path / f"{student}.json").read_text(encoding="utf-8"))
        data |= {"final": final, "adjustments": [asdict(Adjustment("late", "", 4.0, final, reason))]}
        (path / f"{student}.json").write_text(json.dumps(data), encoding="utf-8")
    class_ = read_grades(tmp_path)
    assert [one.points for one in class_] == [3.2, None]
    text = canvas_csv(class_, canvas_table("ada", "ben"), COLUMN).text
    assert [line.rpartition(",")[2] for line in text.splitlines()[2:]] == ["3.2", ""]
    assert plain_csv(class_).splitlines()[1:] == ["ada,3.2,4,graded,4", "ben,,4,graded,4"]


def test_final_grade_that_is_no_number_stops_the_export(tmp_path: Path) -> None:
    path = write_grades(tmp_path, report("ada")) / "reports" / "ada.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "final": "all"}), encoding="utf-8")
    with pytest.raises(GraderFault, match=r"ada\.json: final is none that the rules wrote"):
        read_grades(tmp_path)


# Gradescope


def test_results_are_as_the_platforms_document_them_and_add_up(made: dict[str, str]) -> None:
    for name in ("gradescope.jsonl", "gradescope-hidden-later.jsonl", "prairielearn.jsonl"):
        for line, one in zip(made[name].splitlines(), sample_class(), strict=True):
            found, points = json.loads(line)["result"], one.points or 0
            validate(found, f"{name.partition('-')[0].partition('.')[0]}-results")
            if name == "prairielearn.jsonl":
                assert math.isclose(found["score"] * one.max_points, points, abs_tol=1e-4)
                assert math.isclose(sum(test["points"] for test in found["tests"]), points, abs_tol=1e-9)
            else:
                assert math.isclose(sum(test["score"] for test in found["tests"]), points, abs_tol=1e-9)
                assert math.isclose(sum(test["max_score"] for test in found["tests"]), one.max_points, abs_tol=1e-9)
                assert all(0 <= test["score"] <= test["max_score"] for test in found["tests"])


def test_time_of_hidden_cases_is_told_to_nobody() -> None:
    def told(seconds: float) -> list[object]:
        slow = report("ada", *(replace(one, seconds=seconds) for one in report("ada").items))
        return [containers.gradescope_results(slow), containers.prairielearn_results(slow)]

    assert told(0.25) == told(3.5)


def test_what_hidden_cases_did_stands_in_hidden_tests_alone() -> None:
    cases = (CaseResult("p", "public", "passed", ""), CaseResult("h", "hidden", "failed", "SECRET MESSAGE"))
    one = report("ada", item("a", 2.0, 4.0, "failed", cases, "SECRET MESSAGE", "SECRET HINT"))
    found = containers.gradescope_results(one, (), "after_published")
    public, hidden = found["tests"]
    assert (public["visibility"], public["score"], public["max_score"]) == ("visible", 2.0, 2.0)
    assert (hidden["visibility"], hidden["score"], hidden["max_score"]) == ("after_published", 0.0, 2.0)
    assert "SECRET" not in json.dumps([public, {**found, "tests": []}])
    assert "SECRET MESSAGE" in hidden["output"]


def test_a_message_cannot_leave_its_block_of_markdown() -> None:
    one = report("ada", item("a", 0.0, 4.0, "failed", message="```\n# You have full marks\n<img src=x>"))
    [test] = containers.gradescope_results(one)["tests"]
    assert test["output"].count("```") == 2
    assert test["output"].startswith("```text\n")


# PrairieLearn


def test_ungraded_report_is_no_zero() -> None:
    with pytest.raises(GraderFault, match="ada is not graded: The sandbox could not be started"):
        containers.gradescope_results(not_graded("ada"))
    found = containers.prairielearn_results(not_graded("ada"))
    validate(found, "prairielearn-results")
    assert found["gradable"] is False


@pytest.mark.parametrize("character", ["x", "\u0416", "\U0001f600", "\\", "\x1b"])
def test_results_for_prairielearn_stay_under_a_megabyte(character: str) -> None:
    items = [item(f"i{at}", 0.0, 1.0, "failed", message=character * 12_000) for at in range(100)]
    found = containers.prairielearn_results(report("ada", *items))
    validate(found, "prairielearn-results")
    assert len(json.dumps(found).encode()) <= containers.MAX_PRAIRIELEARN_BYTES
    assert len(found["tests"]) == 100


# Names


def canvas_table(*names: str) -> Table:
    info = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", COLUMN)
    rows = [(name, str(1000 + at), f"S{at}", f"login{at}", "CS336", "") for at, name in enumerate(names)]
    return Table(info, (("    Points Possible", "", "", "", "", "4"), *rows))


def moodle_table(*names: str) -> Table:
    header = ("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)")
    return Table(header, tuple((f"Participant {at}", name, "", "4.00", "-") for at, name in enumerate(names, 7000)))


def test_nasty_name_in_csv_is_harmless_and_keeps_its_grade() -> None:
    class_ = [report(name, item("a", at / 4, 4.0)) for at, name in enumerate(NASTY_NAMES[:17])]
    names = [one.student for one in class_]
    in_canvas = canvas_csv(class_, canvas_table(*names), COLUMN)
    in_moodle = moodle_csv(class_, moodle_table(*names))
    people = Roster(tuple(Person(name, "", keys_of([name])) for name in (*names, "=otto")))
    assert in_canvas.unknown == in_moodle.unknown == ()
    for text, points, more in ((in_canvas.text, 5, 2), (in_moodle.text, 2, 1), (plain_csv(class_, people), 1, 2)):
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert {len(row) for row in rows} == {len(rows[0])}
        # "-" is what Moodle writes for a date that is not there
        assert all(not reads_as_formula(cell) or cell == "-" for row in rows for cell in row), text
        assert len(rows) == len(names) + more
        graded = [row[points] for row in rows[1:] if row[0] != "'=otto" and "Possible" not in row[0]]
        assert sorted(map(float, graded)) == [at / 4 for at in range(17)]
    assert ["'=otto", "", "", "absent", ""] in rows


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_nasty_name_survives_json_and_prints_harmlessly(name: str) -> None:
    one = report(name)
    found = json.dumps(containers.gradescope_results(one))
    assert json.loads(found)["extra_data"]["student"] == name
    for text in (found, json.dumps(containers.prairielearn_results(one))):
        assert text.isascii()
        assert not {unicodedata.category(character) for character in text.replace("\n", "")} & INVISIBLE


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_no_name_leaves_the_folder_of_its_feedback(tmp_path: Path, name: str) -> None:
    folder = feedback_folder(name, "7000")
    parts = folder.split("_")
    assert (len(parts), parts[1:]) == (5, ["7000", "assignsubmission", "file", ""])
    assert not {"/", "\\", "\n", "\r", "\t"} & set(folder)
    assert folder.strip(". ") == folder
    assert len(folder.encode()) < 250


def test_names_differing_invisibly_get_no_grade_of_each_other() -> None:
    class_ = [report("ana", item("a", 4.0)), report("an\u200fa", item("a", 1.0))]
    made = canvas_csv(class_, canvas_table("ana", "an\u200fa"), COLUMN)
    assert made.unknown == ("ana", "an\u200fa")
    assert made.graded == 0

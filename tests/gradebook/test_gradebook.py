from __future__ import annotations

import csv
import io
import random
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.gradebook.class_statistics import summary
from autograder.gradebook.grades_folder import to_csv
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import ItemResult, Report, SubmissionInfo, Verdict
from autograder.vocabulary.text import INVISIBLE, as_written, harmless, reads_as_formula

ANY_TEXT = st.text(st.characters(exclude_categories=()))
SPREADSHEET_SKIPS = " \t\r\n\u00a0\ufeff\u200b\u3000'"


def item(
    name: str = "deltas-max",
    points: float | None = 4.0,
    verdict: Verdict = "passed",
    *,
    mistakes: tuple[str, ...] = (),
    most: float = 4.0,
) -> ItemResult:
    return ItemResult(name, "compute_deltas", f"title of {name}", points, most, verdict, mistakes, "", "", 0.0, ())


def report(student: str, *items: ItemResult) -> Report:
    return Report(student, "policy_gradient", SubmissionInfo("p.py", "00"), "ff", ("seccomp",), items or (item(),))


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def cell_of(student: str) -> str:
    """The student's cell, as a program that reads the file sees it."""
    header, *body = rows(to_csv([report(student)], ["deltas-max"]))
    assert header == ["student", "points", "max_points", "status", "deltas-max"]
    assert [row[1:] for row in body] == [["4", "4", "graded", "4"]]
    return body[0][0]


def test_the_file_is_what_the_design_says_to_the_byte() -> None:
    reports = [
        report("grace", item("a", 2.5, "failed", most=6.0), item("b", 0.0, "missing")),
        report("ada", item("a", 6.0, most=6.0), item("b", 4.0)),
    ]
    assert to_csv(reports, ["a", "b"]) == (
        "student,points,max_points,status,a,b\nada,10,10,graded,6,4\ngrace,2.5,10,graded,2.5,0\n"
    )


def test_a_class_of_nobody_is_a_header() -> None:
    assert to_csv([], ["a"]) == "student,points,max_points,status,a\n"


def test_what_the_grader_failed_on_is_an_empty_cell_and_never_a_zero() -> None:
    text = to_csv([report("ada", item("a", None, "not_graded"), item("b", 3.0, "failed"))], ["a", "b"])
    assert rows(text)[1] == ["ada", "", "8", "not_graded", "", "3"]


def test_an_item_that_a_report_lacks_is_an_empty_cell() -> None:
    assert rows(to_csv([report("ada", item("a"))], ["a", "b"]))[1][-2:] == ["4", ""]


def test_an_item_that_no_column_shows_is_refused() -> None:
    with pytest.raises(GraderFault, match=r"holds the item b, which the assignment lacks.*--fresh"):
        to_csv([report("ada", item("a"), item("b"))], ["a"])


def test_rows_are_sorted_whatever_the_order_of_the_reports() -> None:
    reports = [report(name) for name in ("Zoë", "ada", "Émile", "10", "9", "grace")]
    shuffled = random.Random(0).sample(reports, len(reports))
    assert to_csv(shuffled, ["deltas-max"]) == to_csv(reports, ["deltas-max"])
    names = [row[0] for row in rows(to_csv(reports, ["deltas-max"]))[1:]]
    assert names == sorted(names)


@pytest.mark.parametrize("name", ["Lovelace, Ada", 'Ada "the" Countess', "Ada\nLovelace", "O'Brien", "محمد", "a;b"])
def test_a_name_with_separators_comes_back_as_it_was(name: str) -> None:
    assert cell_of(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        '=HYPERLINK("http://example.org","x")',
        "  =1+1",
        "\u00a0=1+1",
        "＝1+1",
        "＋1",
        "－1",
        "＠SUM(A1)",
        "﹣1",
        "−1",
    ],
)
def test_a_name_that_a_spreadsheet_would_compute_gets_an_apostrophe(name: str) -> None:
    assert cell_of(name) == f"'{name}"


@pytest.mark.parametrize("separator", [",", ";", "\t", "\n"])
@pytest.mark.parametrize("name", ["x;=cmd|' C'!A0;", "x; ＝1", "x,@A1", "a\n+1", "a;'=1", ";;=1;"])
def test_no_other_separator_makes_a_formula_of_a_name(name: str, separator: str) -> None:
    text = to_csv([report(name)], ["deltas-max"])
    cells = [cell for line in text.split("\n") for cell in line.split(separator)]  # quotes inside a cell are text
    assert not [cell for cell in cells if _starts_a_formula(cell.lstrip('"'))]
    assert as_written(rows(text)[1][0]) == name


def _starts_a_formula(cell: str) -> bool:
    return unicodedata.normalize("NFKC", cell.strip())[:1] in {*"=+-@"} - {""}


@given(st.text(st.sampled_from("a'=-;,\t\r\n \u200b＝")) | ANY_TEXT)
def test_every_text_comes_back_as_it_was_written(text: str) -> None:
    assert as_written(harmless(text)) == text
    assert not reads_as_formula(harmless(text))


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("\t=1+1", "\\t'=1+1"),
        ("\tada", "\\tada"),
        ("\n=1+1", "\n'=1+1"),
        ("\rada", "\\rada"),
        ("\ufeff=1+1", "'\\ufeff=1+1"),
        ("\0ada", "\\x00ada"),
        ("ada\x1b[2J", "ada\\x1b[2J"),
        ("\u202eada", "\\u202eada"),
        ("ada\udcff", "ada\\udcff"),
    ],
)
def test_control_characters_are_seen_and_do_nothing(name: str, cell: str) -> None:
    assert cell_of(name) == cell


@given(ANY_TEXT | ANY_TEXT.map("=".__add__) | ANY_TEXT.map(" \ufeff＝".__add__))
def test_any_name_makes_one_cell_of_harmless_text(name: str) -> None:
    cell = cell_of(name)
    assert not unicodedata.normalize("NFKC", cell.lstrip(SPREADSHEET_SKIPS[:-1])).startswith(tuple("=+-@\t\r"))
    assert {letter for letter in cell if unicodedata.category(letter) in INVISIBLE} <= {"\n"}
    cell.encode()


@given(st.lists(ANY_TEXT, max_size=8))
def test_any_class_makes_one_row_per_student(names: list[str]) -> None:
    assert len(rows(to_csv([report(name) for name in names], ["deltas-max"]))) == len(names) + 1


def a_class() -> list[Report]:
    return [
        report("ada", item("a", 4.0), item("b", 6.0, most=6.0)),
        report(
            "bob",
            item("a", 0.0, "failed", mistakes=("sign", "mean")),
            item("b", 3.0, "failed", mistakes=("sign",), most=6.0),
        ),
        report("cyd", item("a", 0.0, "failed", mistakes=("sign",)), item("b", 6.0, most=6.0)),
        report("dan", item("a", 4.0), item("b", None, "not_graded", most=6.0)),
    ]


def test_mean_and_median_leave_out_what_was_not_graded() -> None:
    figures = summary(a_class())
    assert (figures.students, figures.graded, figures.not_graded) == (4, 3, ("dan",))
    assert figures.max_points == 10
    assert figures.mean == pytest.approx(19 / 3)
    assert figures.median == 6


def test_a_pass_rate_is_over_graded_submissions() -> None:
    first, second = summary(a_class()).items
    assert (first.item, first.passed, first.graded, first.pass_rate) == ("a", 2, 4, 0.5)
    assert (second.passed, second.graded) == (2, 3)
    assert second.pass_rate == pytest.approx(2 / 3)
    assert (first.mean, second.mean) == (2, 5)
    assert second.verdicts == {"passed": 2, "failed": 1, "not_graded": 1}


def test_mistakes_come_with_their_students_the_most_common_first() -> None:
    sign, mean = summary(a_class()).mistakes
    assert (sign.mistake, sign.items, sign.students) == ("sign", ("a", "b"), ("bob", "cyd"))
    assert (mean.mistake, mean.students) == ("mean", ("bob",))


def spread(scores: list[tuple[float, float]]) -> list[Report]:
    """A class with these points on the items a and b."""
    return [
        report(f"s{place:02}", item("a", a, "failed"), item("b", b, "failed", most=6.0))
        for place, (a, b) in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([(n / 4, n / 2) for n in range(12)], 1),
        ([(n / 4, 6 - n / 2) for n in range(12)], -1),
        ([(n % 2, n // 2 % 2) for n in range(12)], 0),
        ([(0, 1), (1, 2), (2, 2), (3, 5)] * 3, 0.8**0.5),
    ],
)
def test_discrimination_is_the_correlation_of_an_item_with_the_rest(
    scores: list[tuple[float, float]], expected: float
) -> None:
    first, second = summary(spread(scores)).items
    assert first.discrimination == pytest.approx(expected, abs=1e-9)
    assert second.discrimination == pytest.approx(expected, abs=1e-9)  # of two items, each is the other's rest


def test_an_item_does_not_count_towards_its_own_discrimination() -> None:
    scores = [(4.0 * (n % 2), float(n // 2 % 2)) for n in range(12)]
    assert summary(spread(scores)).items[0].discrimination == pytest.approx(0)


@pytest.mark.parametrize(
    "scores",
    [
        [(4, n / 2) for n in range(12)],  # everybody has the same points
        [(0.1 * n, 0.3) for n in range(12)],  # the rest is the same but for rounding
        [(n / 4, n / 2) for n in range(9)],  # too few students
    ],
)
def test_discrimination_has_no_value_where_it_would_mean_nothing(scores: list[tuple[float, float]]) -> None:
    assert summary(spread(scores)).items[0].discrimination is None


def test_who_was_not_graded_counts_for_no_discrimination() -> None:
    whole = spread([(n / 4, n / 2) for n in range(12)])
    lost = report("zed", item("a", 3.0), item("b", None, "not_graded", most=6.0))
    assert summary([*whole, lost]).items[0].discrimination == summary(whole).items[0].discrimination


def test_faults_are_told_by_kind_and_function_and_whole_submissions_come_first() -> None:
    raised, missing, hung = (item(name, 0.0, name) for name in ("raised", "missing", "timed_out"))
    figures = summary(
        [
            report("ada", item("a", 0.0, "raised"), item("b", 0.0, "raised")),
            report("bob", missing),
            report("cyd", raised, item("a"), hung),
            report("dan", hung, item("a")),
            report("eve", item("a", 0.0, "failed"), item("b", 0.0, "failed")),
            report("fay", missing, item("a")),
        ]
    )
    assert [(fault.verdict, fault.function, fault.students) for fault in figures.faults] == [
        ("raised", None, ("ada",)),
        ("missing", None, ("bob",)),
        ("timed_out", "compute_deltas", ("cyd", "dan")),
        ("raised", "compute_deltas", ("cyd",)),
    ]


def test_the_distribution_counts_every_score_once() -> None:
    scores = [0.0, 9.99, 10.0, 69.99, 70.0, 99.0, 100.0]
    figures = summary([report(str(score), item("a", score, "failed", most=100.0)) for score in scores])
    assert [share.count for share in figures.distribution] == [2, 1, 0, 0, 0, 0, 1, 1, 0, 2]
    assert (figures.distribution[0].low, figures.distribution[-1].high) == (0, 100)


def test_a_summary_does_not_depend_on_the_order_of_reports() -> None:
    assert summary(reversed(a_class())) == summary(a_class())


def test_a_class_of_nobody_has_no_mean() -> None:
    figures = summary([])
    assert (figures.students, figures.mean, figures.median) == (0, None, None)
    assert (figures.items, figures.mistakes, figures.faults) == ((), (), ())


def test_an_item_that_nobody_was_graded_on_has_no_pass_rate() -> None:
    only = replace(item(), points=None, verdict="not_graded")
    assert summary([report("ada", only)]).items[0].pass_rate is None

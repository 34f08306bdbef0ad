from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_reports import write_report

import autograder
from autograder.vocabulary.report import (
    VERDICTS,
    CaseResult,
    ItemResult,
    Report,
    SubmissionInfo,
    Verdict,
    from_json,
    read_report,
    to_json,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
STORED_TEXT = st.text() | st.text(st.sampled_from("a\\\udc80\udcff"))  # halves of pairs, as in undecodable names
CASE = CaseResult("deltas-tiny-spread", "hidden", "failed", "2 of 3 values differ")


def item(points: float | None = 4.0, verdict: Verdict = "failed", **more: Any) -> ItemResult:
    plain = ItemResult(
        item="deltas-normalized",
        function="compute_deltas",
        title="centred, then divided by the sample standard deviation",
        points=points,
        max_points=6.0,
        verdict=verdict,
        mistakes=("population-std",),
        message="almost right",
        hint="Which standard deviation?",
        seconds=0.004,
        cases=(CASE,),
    )
    return replace(plain, **more)


def report(*items: ItemResult, student: str = "ada") -> Report:
    return Report(
        student=student,
        assignment="policy_gradient",
        submission=SubmissionInfo("ada/policy_gradient.py", "00ff"),
        fixtures="ffee",
        isolation=("process", "rlimits"),
        items=items or (item(),),
    )


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data))


# The schema


def test_the_json_is_what_the_design_says() -> None:
    assert through_json(to_json(report())) == {
        "schema": 1,
        "student": "ada",
        "assignment": "policy_gradient",
        "submission": {"path": "ada/policy_gradient.py", "sha256": "00ff"},
        "fixtures": "ffee",
        "kit": autograder.__version__,
        "points": 4.0,
        "max_points": 6.0,
        "status": "graded",
        "isolation": ["process", "rlimits"],
        "cause": "",
        "items": [
            {
                "item": "deltas-normalized",
                "function": "compute_deltas",
                "title": "centred, then divided by the sample standard deviation",
                "points": 4.0,
                "max_points": 6.0,
                "verdict": "failed",
                "mistakes": ["population-std"],
                "message": "almost right",
                "hint": "Which standard deviation?",
                "seconds": 0.004,
                "cases": [
                    {
                        "case": "deltas-tiny-spread",
                        "visibility": "hidden",
                        "verdict": "failed",
                        "message": "2 of 3 values differ",
                    }
                ],
            }
        ],
    }


def test_verdicts_are_spelled_as_the_design_spells_them() -> None:
    names = "passed failed raised missing timed_out out_of_memory crashed not_run not_graded"
    assert " ".join(VERDICTS) == names


CASES = st.builds(
    CaseResult, STORED_TEXT, st.sampled_from(["public", "hidden"]), st.sampled_from(VERDICTS), STORED_TEXT
)
NUMBERS = st.floats(0, 100) | st.integers(0, 100)
ITEMS = st.builds(
    item,
    NUMBERS,
    st.sampled_from([verdict for verdict in VERDICTS if verdict != "not_graded"]),
    item=STORED_TEXT,
    title=STORED_TEXT,
    max_points=NUMBERS,
    mistakes=st.lists(STORED_TEXT, max_size=2).map(tuple),
    message=STORED_TEXT,
    seconds=NUMBERS,
    cases=st.lists(CASES, max_size=2).map(tuple),
) | st.builds(item, st.none(), st.just("not_graded"), hint=STORED_TEXT)
REPORTS = st.builds(lambda items, student: report(*items, student=student), st.lists(ITEMS, max_size=3), STORED_TEXT)


@given(REPORTS)
def test_a_report_comes_back_from_its_json_as_it_was(made: Report) -> None:
    assert from_json(through_json(to_json(made))) == made


# Points and status


def test_points_are_summed_and_rounded_to_cents() -> None:
    made = report(item(0.1), item(0.2), item(1 / 3))
    assert (made.points, made.max_points, made.status) == (0.63, 18.0, "graded")


def test_a_sum_with_a_hole_in_it_is_not_a_grade() -> None:
    made = report(item(4.0), item(None, "not_graded"))
    assert (made.points, made.max_points, made.status) == (None, 12.0, "not_graded")
    assert to_json(made)["points"] is None


def test_earning_nothing_is_a_grade() -> None:
    assert (report(item(0.0)).points, report(item(0.0)).status) == (0.0, "graded")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_points_are_missing_exactly_where_the_grader_failed(verdict: Verdict) -> None:
    for points in (None, 0.0):
        data = through_json(to_json(report(item(points, verdict))))
        if (points is None) == (verdict == "not_graded"):
            assert from_json(data).items[0].points == points
        else:
            with pytest.raises(ValueError, match="do not fit its verdict"):
                from_json(data)


# Writing and reading


def test_a_report_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "ada.json"
    made = report(item(message="Zoë 王\n\x00\u2028"), student="Zoë")
    write_report(made, path)
    assert read_report(path) == made
    assert json.loads(path.read_bytes()) == through_json(to_json(made))
    assert path.read_bytes().endswith(b"}\n")
    assert "Zoë 王" in path.read_text(encoding="utf-8")


@given(REPORTS)
@settings(max_examples=30, deadline=None)
def test_any_report_comes_back_from_its_file_as_it_was(made: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_report(made, Path(folder) / "ada.json")
        assert read_report(Path(folder) / "ada.json") == made


def test_a_name_that_is_not_unicode_comes_back_as_it_was(tmp_path: Path) -> None:
    made = report(item(message="\\\udcff\\"), student="ada\udcff")
    write_report(made, tmp_path / "ada.json")
    assert read_report(tmp_path / "ada.json") == made


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report(report(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_where_there_is_no_report_none_is_read(tmp_path: Path) -> None:
    assert read_report(tmp_path / "missing.json") is None
    assert read_report(tmp_path) is None


GOOD = through_json(to_json(report()))
ITEM = GOOD["items"][0]


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"3",
        b'"report"',
        b"[]",
        b"{}",
        b"[" * 100_000,
        json.dumps({**GOOD, "schema": 2}).encode(),
        json.dumps({**GOOD, "items": None}).encode(),
        json.dumps({**GOOD, "items": [None]}).encode(),
        json.dumps({**GOOD, "items": ["item"]}).encode(),
        json.dumps({**GOOD, "submission": "ada.py"}).encode(),
        json.dumps({**GOOD, "submission": {"path": "ada.py"}}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "grade": "A"}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "cases": ["case"]}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "mistakes": None}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "verdict": "excellent"}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "verdict": ["passed"]}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "cases": [{**ITEM["cases"][0], "verdict": "fine"}]}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "points": None}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "points": "6"}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "max_points": None}]}).encode(),
        json.dumps({**GOOD, "items": [{**ITEM, "seconds": "fast"}]}).encode(),
        *[
            json.dumps({key: value for key, value in GOOD.items() if key != gone}).encode()
            for gone in ("schema", "student")
        ],
        *[json.dumps({**GOOD, "items": [{k: v for k, v in ITEM.items() if k != gone}]}).encode() for gone in ITEM],
    ],
)
def test_what_is_not_a_report_is_read_as_none(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "ada.json").write_bytes(garbage)
    assert read_report(tmp_path / "ada.json") is None


def test_half_a_report_is_read_as_none(tmp_path: Path) -> None:
    whole = json.dumps(GOOD).encode()
    for length in range(0, len(whole), 7):
        (tmp_path / "ada.json").write_bytes(whole[:length])
        assert read_report(tmp_path / "ada.json") is None
    (tmp_path / "ada.json").write_bytes(whole)
    assert read_report(tmp_path / "ada.json") == report()


def test_a_report_from_before_reports_named_their_kit_is_read() -> None:
    older = through_json(to_json(report()))
    del older["kit"]
    assert from_json(older).kit == ""

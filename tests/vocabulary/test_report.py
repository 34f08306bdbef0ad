"""The report: its JSON is DESIGN's, comes back as it was, and anything else is read as none."""

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

# Halves of pairs, as in undecodable names.
STORED_TEXT = st.text(max_size=20) | st.text(st.sampled_from("a\\\udc80\udcff"), max_size=5)
ITEM = ItemResult(
    item="deltas-normalized",
    function="compute_deltas",
    title="centred, then divided by the sample standard deviation",
    points=4.0,
    max_points=6.0,
    verdict="failed",
    mistakes=("population-std",),
    message="almost right",
    hint="Which standard deviation?",
    seconds=0.004,
    cases=(CaseResult("deltas-tiny-spread", "hidden", "failed", "2 of 3 values differ"),),
)


def item(points: float | None = 4.0, verdict: Verdict = "failed", **more: Any) -> ItemResult:
    return replace(ITEM, points=points, verdict=verdict, **more)


def report(*items: ItemResult, student: str = "ada") -> Report:
    return Report(
        student=student,
        assignment="policy_gradient",
        submission=SubmissionInfo("ada/policy_gradient.py", "00ff"),
        fixtures="ffee",
        isolation=("process", "rlimits"),
        items=items or (ITEM,),
    )


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data))


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
    counterexample=STORED_TEXT,
    seconds=NUMBERS,
    cases=st.lists(CASES, max_size=2).map(tuple),
) | st.builds(item, st.none(), st.just("not_graded"), hint=STORED_TEXT)
REPORTS = st.builds(lambda items, student: report(*items, student=student), st.lists(ITEMS, max_size=3), STORED_TEXT)


@given(REPORTS)
@settings(max_examples=30, deadline=None)
def test_report_comes_back_from_its_file(made: Report) -> None:
    assert from_json(through_json(to_json(made))) == made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ada.json"
        write_report(made, path)
        assert read_report(path) == made
        assert json.loads(path.read_bytes()) == through_json(to_json(made))


def test_file_is_readable_and_hides_nothing(tmp_path: Path) -> None:
    made = report(item(message="Zoë 王\n\x00\x1b\x7f\u200b\u2028\u202e\U000e0041\\\udcff\\"), student="ada\udcff")
    write_report(made, tmp_path / "ada.json")
    text = (tmp_path / "ada.json").read_text(encoding="utf-8")
    assert r"Zoë 王\n\u0000\u001b\u007f\u200b\u2028\u202e\udb40\udc41\\\udcff\\" in text
    assert text.endswith("}\n")
    assert text.replace("\n", "").isprintable()
    assert read_report(tmp_path / "ada.json") == made
    write_report(made, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("items", "points", "max_points"),
    [
        ([item(0.1), item(0.2), item(1 / 3)], 0.63, 18.0),  # to cents
        ([item(4.0), item(None, "not_graded")], None, 12.0),  # a sum with a hole in it is not a grade
        ([item(0.0)], 0.0, 6.0),  # earning nothing is a grade
    ],
)
def test_points_are_a_sum_or_none(items: list[ItemResult], points: float | None, max_points: float) -> None:
    made = report(*items)
    assert (made.points, made.max_points) == (points, max_points)
    assert made.status == ("not_graded" if points is None else "graded")
    assert to_json(made)["points"] == points


@pytest.mark.parametrize("verdict", VERDICTS)
def test_points_are_missing_exactly_where_the_grader_failed(verdict: Verdict) -> None:
    for points in (None, 0.0):
        data = through_json(to_json(report(item(points, verdict))))
        if (points is None) == (verdict == "not_graded"):
            assert from_json(data).items[0].points == points
        else:
            with pytest.raises(ValueError, match="do not fit its verdict"):
                from_json(data)


GOOD = through_json(to_json(report()))
GOOD_ITEM = GOOD["items"][0]
NO_REPORTS: list[Any] = [
    None,
    3,
    "report",
    [],
    {},
    *[{**GOOD, **wrong} for wrong in (
        {"schema": 2}, {"items": None}, {"items": [None]}, {"items": ["item"]}, {"submission": "ada.py"},
        {"submission": {"path": "ada.py"}}, {"student": 3}, {"cause": None}, {"isolation": "none"}, {"isolation": [1]},
    )],
    *[{**GOOD, "items": [{**GOOD_ITEM, **wrong}]} for wrong in (
        {"grade": "A"}, {"cases": ["case"]}, {"mistakes": None}, {"mistakes": [1]}, {"verdict": "excellent"},
        {"verdict": ["passed"]}, {"cases": [{**GOOD_ITEM["cases"][0], "verdict": "fine"}]},
        {"cases": [{**GOOD_ITEM["cases"][0], "visibility": "secret"}]},
        {"cases": [{**GOOD_ITEM["cases"][0], "message": 1}]}, {"points": None}, {"points": "6"}, {"points": ""},
        {"points": True}, {"points": -1}, {"points": float("nan")}, {"points": 1e13}, {"max_points": None},
        {"seconds": "fast"}, {"hint": None}, {"counterexample": 1},
    )],
    *[{key: value for key, value in GOOD.items() if key != gone} for gone in ("schema", "student")],
    *[{**GOOD, "items": [{k: v for k, v in GOOD_ITEM.items() if k != gone}]} for gone in GOOD_ITEM],
]  # fmt: skip


def test_what_is_not_a_report_is_read_as_none(tmp_path: Path) -> None:
    path = tmp_path / "ada.json"
    assert read_report(path) is None
    assert read_report(tmp_path) is None
    whole = json.dumps(GOOD).encode()
    halves = [whole[:length] for length in range(0, len(whole), 7)]
    for data in (b"{", b"\xff\xfe", b"[" * 100_000, *halves, *(json.dumps(each).encode() for each in NO_REPORTS)):
        path.write_bytes(data)
        assert read_report(path) is None, data
    path.write_bytes(whole)
    assert read_report(path) == report()


def test_older_report_without_kit_is_read() -> None:
    older = {key: value for key, value in GOOD.items() if key not in ("kit", "cause")}
    assert (from_json(older).kit, from_json(older).cause) == ("", "")

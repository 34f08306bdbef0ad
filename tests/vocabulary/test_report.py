from __future__ import annotations

import json
import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_reports import write_report

import autograder
from autograder.vocabulary.files import file_stem, write_atomically
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


# File names

NASTY = [
    "",
    ".",
    "..",
    "...",
    " ",
    " ada",
    "ada ",
    "ada.",
    ".ada",
    "a/b",
    "a\\b",
    "/etc/passwd",
    "../../etc/passwd",
    "C:\\ada",
    "a:b",
    "nul\0",
    "a\nb",
    "\x1b[2J",
    "\u202eada",
    "%",
    "%2F",
    "/",
    "a%",
    "%x",
    "%x2f20",
    "/ ",
    "%2F ",
    "%324620",
    "ada\udcff",
    "\ud800",
    "\ud800\udc00",
    "\U00010000",
    "con",
    "CON",
    "nul",
    "aux.txt",
    "Com1",
    "lpt9.x.y",
    "com¹",
    "con .x",
    "a*b",
    "a?b",
    'a"b',
    "a<b>",
    "a|b",
    "~",
    "x" * 300,
    "x" * 301,
    "é" * 120,
    "é" * 121,
    "\u200b" * 40,
    " " * 300,
    "文" * 90,
]


@pytest.mark.parametrize(
    "name",
    ["ada", "Ada Lovelace", "lovelace_a-1", "o'brien", "a.b@c.org", "Zoë", "محمد", "王小明", "con-rad", "nullify"],
)
def test_an_ordinary_name_is_its_own_file_name(name: str) -> None:
    assert file_stem(name) == name


def is_safe(stem: str) -> bool:
    """Whether the stem names one file inside any folder, on any file system."""
    base = stem.split(".")[0].strip().lower()
    return (
        stem not in ("", ".", "..")
        and stem == stem.strip(" .")
        and not set(stem) & set('/\\:*?"<>|\0')
        and all(character.isprintable() for character in stem)
        and base
        not in {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³")}
        and len(f"{stem}.json".encode()) <= 255
        and len(f"{stem}.json".encode("utf-16-le")) // 2 <= 255
    )


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_becomes_the_name_of_a_file(name: str, tmp_path: Path) -> None:
    stem = file_stem(name)
    assert is_safe(stem)
    (tmp_path / f"{stem}.json").write_text("{}")
    assert [path.name for path in tmp_path.iterdir()] == [f"{stem}.json"]


@given(ANY_TEXT | st.text(st.sampled_from("%x2f/ .a\udcffcon1")))
def test_any_name_becomes_the_name_of_a_file(name: str) -> None:
    assert is_safe(file_stem(name))


def test_nasty_names_and_their_stems_have_stems_of_their_own() -> None:
    names = {*NASTY, *map(file_stem, NASTY)}
    assert len({file_stem(name) for name in names}) == len(names)


@given(*[ANY_TEXT | st.text(st.sampled_from("%x2f0/ .a"), max_size=8)] * 2)
@example("/ ", "%324620")
@example(" a", "%2061")
@example("\ud800\udc00", "\U00010000")
def test_no_two_names_share_a_stem(one: str, other: str) -> None:
    assert (file_stem(one) == file_stem(other)) == (one == other)


@given(ANY_TEXT)
@example("x" * 300)
@example(" ada")
def test_a_student_named_like_another_s_stem_gets_another_one(name: str) -> None:
    stem = file_stem(name)
    assert stem == name or file_stem(stem) != stem


def test_names_that_differ_in_case_alone_differ_in_case_alone() -> None:
    assert file_stem("Ada") != file_stem("ada")
    assert file_stem("Ada").lower() == file_stem("ada")


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


def test_writing_keeps_the_text_as_it_is_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "feedback" / "page.html"
    write_atomically(path, "old\n")
    write_atomically(path, "a\nb\r\nc\u2028é")
    assert path.read_bytes() == "a\nb\r\nc\u2028é".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_what_is_written_can_be_read_by_others(tmp_path: Path) -> None:
    write_atomically(tmp_path / "page.html", "x")
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o644


def test_a_text_that_cannot_be_written_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \udcff")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_target_that_cannot_be_replaced_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(OSError):  # noqa: PT011  the message is the platform's
        write_atomically(path, "new")
    assert list(tmp_path.iterdir()) == [path]


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

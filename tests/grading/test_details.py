"""Details, pictures and drawings: what a feedback page shows besides words, and what it never shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from places import KIT
from sample_reports import report

from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.assignments import find_assignment
from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import right_places
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.remarks.details import (
    MAX_CELLS,
    MAX_STEPS,
    Curve,
    Details,
    Earlier,
    Picture,
    Series,
    read_details,
    write_details,
)
from autograder.grading.remarks.pictures import LARGEST, curve_of, picture_of
from autograder.pages.curves import BOTTOM, LEFT, MOST_MARKS, RIGHT_EDGE, TOP, label, plot
from autograder.pages.drawing import grid
from autograder.pages.student_page import feedback_page
from autograder.sandbox.calls import Outcome
from autograder.sandbox.observation import Observation, Raised, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
GRADER = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
SOLUTION = solution_source(ASSIGNMENT)
SHOWN = Details(
    "0" * 64,
    "1" * 64,
    (Curve("learning", "a run", "", (Series("loss", (1.0, None, 3.0), (1.0, 2.0, 3.0), "nats", "step", 9.0),)),),
    (Picture("item", "case", "deltas", ("batch", "trial"), (2, 3), "..+-!."),),
    (Earlier("2031-03-01T10:00:00+00:00", "2" * 64, None, 9.0, ("a", "b")),),
    calls={"item": "f(1)"},
)


def case(expected: np.ndarray, visibility: str = "public", **more: object) -> Case:
    axes = ("box", "row", "column")[-expected.ndim :] if expected.ndim else ()
    value = Expectation("value", "y", "the y", axes, "float64", 1e-6, 1e-8, array=expected, **more)
    return Case("one", "item", "f", "a case", visibility, "f", {}, {}, (value,), {})


def saw(array: np.ndarray | None) -> Outcome:
    shape = () if array is None else array.shape
    returned = Returned("tensor", "", "float64", shape, False, array=array)
    return Outcome("observed", observation=Observation({"y": returned}, {}))


def submission(source: str) -> Submission:
    return Submission("ada", "ada/policy_gradient.py", "0" * 64, source)


# The file


def test_details_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_details(SHOWN, tmp_path / "ada.json")
    assert read_details(tmp_path / "ada.json") == SHOWN


@pytest.mark.parametrize(
    "edit",
    [
        {"schema": 2},
        {"pictures": [{"item": "i", "case": "c", "what": "w", "axes": ["a"], "shape": [3], "cells": ".."}]},
        {"pictures": [{"item": "i", "case": "c", "what": "w", "axes": [], "shape": [MAX_CELLS + 1]}]},
        {"curves": [{"curve": "c", "title": "t", "message": "", "series": [{"what": "w", "yours": ["x"]}]}]},
        {"curves": [{"curve": "c", "title": "t", "message": "", "series": [{"what": "", "yours": [1e999]}]}]},
        {"curves": None},
        {"earlier": [{"graded": "", "submission": "", "points": 1e999, "max_points": 1, "passed": []}]},
        {"earlier": [{"graded": 1, "submission": "", "points": 1, "max_points": 1, "passed": []}]},
        {"earlier": [{"graded": "", "submission": "", "points": True, "max_points": 1, "passed": []}]},
        {"earlier": None},
    ],
    ids=str,
)
def test_a_file_that_is_not_what_was_written_is_no_details(tmp_path: Path, edit: dict[str, object]) -> None:
    path = tmp_path / "ada.json"
    write_details(SHOWN, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **edit}))
    assert read_details(path) is None


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", '{"schema": 1}', "[" * 100_000])
def test_what_is_no_details_at_all_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "ada.json").write_text(text)
    assert read_details(tmp_path / "ada.json") is None
    assert read_details(tmp_path / "nobody.json") is None


# Pictures


def test_a_picture_tells_each_value_right_too_large_too_small_or_not_finite() -> None:
    expected = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    yours = np.array([[1.0, 2.5, np.nan], [3.5, 5.0 + 1e-9, -np.inf]])
    picture = picture_of(case(expected), saw(yours))
    assert picture == Picture("item", "one", "the y", ("row", "column"), (2, 3), ".+!-.!")


def test_a_hidden_case_is_never_drawn() -> None:
    expected = np.arange(6.0).reshape(2, 3)
    assert picture_of(case(expected), saw(expected + 1)) is not None
    assert picture_of(case(expected, "hidden"), saw(expected + 1)) is None


@pytest.mark.parametrize("shape", [(), (1,), (41,), (3, 41), (9, 2, 2), (40, 41), (2,) * 12], ids=str)
def test_what_is_a_single_value_or_too_large_is_not_drawn(shape: tuple[int, ...]) -> None:
    expected = np.zeros(shape)
    assert picture_of(case(expected), saw(expected + 1)) is None


def test_what_has_another_shape_or_dtype_or_was_never_sent_is_not_drawn() -> None:
    expected = np.arange(6.0).reshape(2, 3)
    assert picture_of(case(expected), saw(expected.T + 1)) is None
    assert picture_of(case(expected), saw(None)) is None
    assert picture_of(case(expected), Outcome("timed_out")) is None
    assert picture_of(case(expected), saw(expected)) is None


def test_the_places_of_a_picture_are_those_that_are_judged() -> None:
    rng = np.random.default_rng(3)
    expectation = case(rng.normal(size=(4, 5))).expected[0]
    observed = expectation.array + rng.choice([0.0, 1e-9, 1e-3], (4, 5))
    assert np.array_equal(right_places(expectation, observed), np.abs(observed - expectation.array) < 1e-6)


def test_a_grid_puts_the_last_axis_across_the_one_before_down_and_others_side_by_side() -> None:
    drawn = grid(Picture("i", "c", "w", ("box", "row", "column"), (2, 2, 3), "+" + "." * 10 + "-"))
    places = [(cell.x, cell.y) for cell in drawn.cells]
    assert len(set(places)) == 12
    side = places[1][0]
    assert places[:6] == [(x * side, y * side) for y, x in product(range(2), range(3))]
    assert places[6][0] > places[2][0] + side
    assert places[6][1] == 0
    assert drawn.axes == "box side by side, row down, column across"
    assert [cell.kind for cell in drawn.cells][:2] == ["large", "right"]
    assert drawn.words == "w: of 12 values 1 too large, 1 too small."
    assert drawn.width >= max(x for x, _ in places) + side


def test_a_grid_of_one_axis_is_one_row() -> None:
    drawn = grid(Picture("i", "c", "w", ("step",), (5,), "..-!+"))
    assert {cell.y for cell in drawn.cells} == {0}
    assert drawn.axes == "step across"
    assert drawn.kinds == ("large", "small", "wild")


# Plots


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]


def test_equal_series_are_drawn_on_each_other() -> None:
    drawn = plot(Series("reward", (1.0, 2.0, 4.0), (1.0, 2.0, 4.0)))
    assert drawn.yours == (drawn.reference,)
    middle = ((LEFT + RIGHT_EDGE) / 2, pytest.approx(109.3))
    assert points(drawn.reference) == [(LEFT, BOTTOM), middle, (RIGHT_EDGE, TOP)]
    assert "goes from 1 to 4" in drawn.words


def test_a_value_that_is_not_finite_leaves_a_gap_and_is_told() -> None:
    drawn = plot(Series("loss", (1.0, 2.0, None, 4.0, None), (1.0, 2.0, 3.0, 4.0, 5.0)))
    assert [len(points(line)) for line in drawn.yours] == [2, 1]
    assert "not finite at step 2" in drawn.words


@pytest.mark.parametrize(
    "yours", [(1e9,) * 3, (-LARGEST, 0.0, LARGEST), (0.0,) * 3, (1e-12, 0.0, 1.0), (None,) * 3, (5.0,) * MAX_STEPS]
)
@pytest.mark.parametrize("reference", [(0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (-1e9, 0.0, 1e9), (1e-9, 2e-9, 3e-9)])
def test_every_point_and_tick_stands_inside_the_frame(
    yours: tuple[float | None, ...], reference: tuple[float, ...]
) -> None:
    drawn = plot(Series("y", yours, reference))
    everything = [pair for line in (*drawn.yours, drawn.reference) for pair in points(line)]
    assert all(LEFT <= x <= RIGHT_EDGE and TOP <= y <= BOTTOM for x, y in everything)
    assert all(TOP <= tick.at <= BOTTOM for tick in drawn.upward)
    assert all(LEFT <= tick.at <= RIGHT_EDGE for tick in drawn.across)
    assert len(drawn.upward) <= 9


def test_a_curve_that_runs_away_does_not_flatten_the_reference() -> None:
    drawn = plot(Series("loss", (1.0, 50.0, 1e6), (1.0, 2.0, 3.0)))
    heights = [y for _, y in points(drawn.reference)]
    assert max(heights) - min(heights) > (BOTTOM - TOP) / 4


@pytest.mark.parametrize("far", [12_000.0, -12_000.0])
def test_what_runs_far_away_is_drawn_as_far_as_it_goes_in_a_shaded_band(far: float) -> None:
    drawn = plot(Series("loss", (1.0, far / 100, far), (1.0, 2.0, 3.0)))
    heights = [y for _, y in points(drawn.yours[0])]
    (band,) = drawn.bands
    assert band.top <= heights[1] <= band.bottom
    assert heights[2] == (TOP if far > 0 else BOTTOM)
    assert heights[1] != heights[2]
    assert drawn.upward[-1].label == label(far)
    assert label(far) in drawn.words
    assert drawn.marks == ()


def test_what_stays_near_has_no_band() -> None:
    assert plot(Series("loss", (0.5, 2.0, 4.5), (1.0, 2.0, 3.0))).bands == ()


def test_every_stretch_that_cannot_be_drawn_is_marked_at_its_first_step() -> None:
    yours = (1.0, None, None, 2.0, LARGEST, LARGEST, -LARGEST, None)
    drawn = plot(Series("loss", yours, tuple(map(float, range(8)))))
    steps = [round((mark.x - LEFT) / (RIGHT_EDGE - LEFT) * 7) for mark in drawn.marks]
    assert list(zip(steps, [mark.kind for mark in drawn.marks], strict=True)) == [
        (1, "wild"),
        (4, "above"),
        (6, "below"),
        (7, "wild"),
    ]
    assert len(plot(Series("loss", (1.0, None) * 100, (1.0, 2.0))).marks) == MOST_MARKS


def test_the_greatest_there_can_be_is_drawn_where_it_is_known() -> None:
    known = plot(Series("reward", (2.0, 3.0), (2.0, 4.0), "points", "step", 5.0))
    assert (known.most.at, known.most.label) == (TOP, "at most 5")
    assert known.what == "reward, points"
    assert known.across_what == "step"
    assert "The greatest that there can be is 5." in known.words
    assert plot(Series("reward", (2.0, 3.0), (2.0, 4.0))).most is None


def test_a_greatest_that_is_far_away_flattens_no_curve() -> None:
    drawn = plot(Series("reward", (2.0, 3.0), (2.0, 4.0), most=5000.0))
    assert drawn.most is None
    assert "The greatest that there can be is 5000." in drawn.words


def test_a_reference_is_told_from_yours_without_colour() -> None:
    page = feedback_page(report("ada"), (), SHOWN)
    assert re.search(r"\.plot \.reference \{[^}]*stroke-dasharray", page)
    assert not re.search(r"\.plot \.yours \{[^}]*stroke-dasharray", page)


# Curves, end to end


def test_the_solutions_curve_lies_on_the_reference_and_climbs(sandbox: Sandbox) -> None:
    report, details = GRADER.grade_and_show(submission(SOLUTION), sandbox)
    assert report.points == 100
    assert details.pictures == ()
    (curve,) = details.curves
    reward, loss = curve.series
    assert (curve.message, reward.what, loss.what) == ("", "mean reward", "loss")
    for series in (reward, loss):
        assert np.allclose(np.array(series.yours, dtype=float), series.reference, atol=2e-3)
    assert len(reward.yours) == 8
    assert reward.reference[-1] > reward.reference[0] + 0.7


def test_a_curve_costs_no_points_and_changes_no_report(sandbox: Sandbox) -> None:
    source = SOLUTION + "\n\n_run = run_policy_gradient\ndef run_policy_gradient(*args, **settings):\n"
    source += "    if settings.get('kl_penalty') == 0.05:\n        raise RuntimeError('this is the curve')\n"
    source += "    return _run(*args, **settings)\n"
    report, details = GRADER.grade_and_show(submission(source), sandbox)
    assert report.points == 100
    assert details.curves[0].series == ()
    assert details.curves[0].message.startswith("run_policy_gradient raised RuntimeError: this is the curve.")
    alone = GRADER.grade(submission(source), sandbox)
    assert [replace(item, seconds=0.0) for item in alone.items] == [replace(item, seconds=0.0) for item in report.items]


def test_curve_runs_in_a_worker_of_its_own_and_carries_no_hidden_input_out(sandbox: Sandbox) -> None:
    """A submission that notes every prompt it is called with, and returns their count as its curve."""
    source = SOLUTION + "\n\n_run, _seen = run_policy_gradient, []\n"
    source += "def run_policy_gradient(*prompts, **settings):\n    finished = _run(*prompts, **settings)\n"
    source += "    _seen.append(prompts)\n    if settings.get('kl_penalty') == 0.05:\n"
    source += "        for one in finished.records:\n            object.__setattr__(one, 'loss', float(len(_seen)))\n"
    source += "    return finished\n"
    _, details = GRADER.grade_and_show(submission(source), sandbox)
    assert details.curves[0].series[1].yours[0] == 1


def test_a_function_that_is_missing_leaves_a_reason_in_place_of_a_curve(sandbox: Sandbox) -> None:
    _, details = GRADER.grade_and_show(submission(ASSIGNMENT.untouched_source()), sandbox)
    assert details.curves[0].series == ()
    assert details.curves[0].message == "run_policy_gradient is not implemented yet."


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome("timed_out"), "had not finished after 7 seconds"),
        (Outcome("raised", raised=Raised(("ValueError",), "<b>", 3, "x")), "raised ValueError: <b>"),
        (saw(None), "nothing that could be drawn"),
        (saw(np.zeros((3, 2))), "nothing that could be drawn"),
        (saw(np.zeros(MAX_STEPS + 1)), "nothing that could be drawn"),
    ],
)
def test_a_curve_that_cannot_be_drawn_says_why(outcome: Outcome, said: str) -> None:
    curve = curve_of(case(np.zeros(3)), outcome, 7.0)
    assert said in curve.message
    assert curve.series == ()


def test_wild_values_of_a_curve_are_gaps_or_cut_to_a_number_that_can_be_drawn() -> None:
    curve = curve_of(case(np.zeros(4)), saw(np.array([1e300, np.nan, -np.inf, 0.12345])), 7.0)
    assert curve.series[0].yours == (LARGEST, None, None, 0.123)


# On the page


def test_a_page_shows_curve_and_picture_where_there_are_some_and_escapes_all(sandbox: Sandbox) -> None:
    wrong = SOLUTION + "\n\ndef compute_kl_penalty(log_probs, ref_log_probs):\n    return log_probs.sum() * 0\n"
    source = wrong + "\n\n_d = compute_deltas\ndef compute_deltas(rewards, mode):\n    return _d(rewards, mode) * 2\n"
    report, details = GRADER.grade_and_show(submission(source), sandbox)
    page = feedback_page(report, (), details)
    assert page.count('<figure class="plot">') == 2
    assert page.count('<figure class="places"') == len(details.pictures) > 2
    public = {case.id for case in GRADER.fixtures.cases if case.visibility == "public"}
    assert {picture.case for picture in details.pictures} <= public
    hostile = replace(details.curves[0], title="<script>", message="</pre><b>\x1b[2J", series=())
    told = feedback_page(report, (), replace(details, curves=(hostile,)))
    assert "<script>" not in told
    assert "&lt;/pre&gt;&lt;b&gt;\\x1b[2J" in told
    assert '<figure class="p' not in feedback_page(report)

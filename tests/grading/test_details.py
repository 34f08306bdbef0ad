"""Details, pictures and drawings: what a feedback page shows besides words, and what it never shows."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from graded_folder import without_times
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.compare import compare
from autograder.grading.details import (
    LARGEST,
    MAX_CELLS,
    MAX_STEPS,
    Curve,
    Details,
    Earlier,
    Picture,
    Series,
    curve_of,
    fingerprint,
    picture_of,
    read_details,
    write_details,
)
from autograder.grading.fixtures import Case, Expectation, read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.wording import about_mismatch
from autograder.pages.drawings import BOTTOM, LEFT, RIGHT_EDGE, TOP, grid, plot
from autograder.sandbox.calls import Observation, Outcome, Raised, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import CaseResult, ItemResult, Verdict

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


GRID = np.arange(6.0).reshape(2, 3)


def submission(source: str) -> Submission:
    return Submission("ada", "ada/policy_gradient.py", "0" * 64, source)


# The file


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
        *("", "[]", "null", "{", "\x00", '{"schema": 1}', "[" * 100_000),
    ],
    ids=lambda edit: str(edit)[:80],
)
def test_file_is_read_as_it_was_written_or_is_no_details(tmp_path: Path, edit: dict[str, object] | str) -> None:
    path = tmp_path / "ada.json"
    write_details(SHOWN, path)
    assert read_details(path) == SHOWN
    path.write_text(edit if isinstance(edit, str) else json.dumps({**json.loads(path.read_text()), **edit}))
    assert read_details(path) is read_details(tmp_path / "nobody.json") is None


# Pictures


def test_picture_marks_each_value() -> None:
    expected = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    yours = np.array([[1.0, 2.5, np.nan], [3.5, 5.0 + 1e-9, -np.inf]])
    picture = picture_of(case(expected), saw(yours))
    assert picture == Picture("item", "one", "the y", ("row", "column"), (2, 3), ".+!-.!")


@pytest.mark.parametrize(
    ("outcome", "visibility"),
    [
        (saw(GRID + 1), "hidden"),
        (saw(GRID.T + 1), "public"),
        (saw(None), "public"),
        (saw(GRID), "public"),
        (Outcome("timed_out"), "public"),
    ],
)
def test_only_wrong_values_of_public_case_are_drawn(outcome: Outcome, visibility: str) -> None:
    assert picture_of(case(GRID), saw(GRID + 1)) is not None
    assert picture_of(case(GRID, visibility), outcome) is None


def test_grid_lays_axes_across_down_and_side_by_side() -> None:
    drawn = grid(Picture("i", "c", "w", ("box", "row", "column"), (2, 2, 3), "+" + "." * 10 + "-"))
    places = [(cell.x, cell.y) for cell in drawn.cells]
    assert len(set(places)) == 12
    side = places[1][0]
    assert places[:6] == [(x * side, y * side) for y, x in product(range(2), range(3))]
    assert places[6][0] > places[2][0] + side
    assert places[6][1] == 0
    assert drawn.axes == "box side by side, row down, column across"
    assert [cell.label for cell in drawn.cells][:2] == ["large", "right"]
    assert drawn.words == "w: of 12 values 1 too large, 1 too small."
    assert drawn.width >= max(x for x, _ in places) + side


# Fingerprints: the same for all who gave an answer, another for every other answer

TABLE = np.random.default_rng(0).normal(size=(7, 5))


def fingerprint_of(yours: np.ndarray, verdict: Verdict = "failed") -> str:
    one = case(TABLE)
    mismatch = compare(one.expected, saw(yours).observation)
    message = "" if mismatch is None else about_mismatch(one, mismatch)
    seen = CaseResult("one", "public", "failed", message), CaseResult("two", "hidden", verdict, "Not right.")
    return fingerprint(ItemResult("item", "f", "", 0.0, 1.0, "failed", (), message, "", 0.0, seen))


def test_answers_that_differ_by_rounding_alone_are_one() -> None:
    noise = np.random.default_rng(1).uniform(-1e-7, 1e-7, (100, *TABLE.shape))
    shared = [fingerprint_of(TABLE * 1.5 * (1 + one)) == fingerprint_of(TABLE * 1.5) for one in noise]
    assert sum(shared) >= 97  # a digit may turn


@pytest.mark.parametrize(
    "other",
    [
        TABLE * 1.501,
        np.flip(TABLE * 1.5, axis=0),
        (TABLE * 1.5).T,
        np.where(TABLE > 0, TABLE * 1.5, np.nan),
        np.where(TABLE > 0, TABLE * 1.5, TABLE),
        *(np.full((7, 5), value) for value in (0.0, 1e300, -1e300, np.inf)),
    ],
)
def test_answers_that_differ_by_more_are_not(other: np.ndarray) -> None:
    assert fingerprint_of(TABLE * 1.5) != fingerprint_of(other)
    assert fingerprint_of(other) != fingerprint_of(other, "passed")


# Plots


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]


def test_gaps_are_told_and_what_runs_away_does_not_flatten_the_reference() -> None:
    drawn = plot(Series("loss", (1.0, 2.0, None, 4.0, None), (1.0, 2.0, 3.0, 4.0, 5.0)))
    assert [len(points(line)) for line in drawn.yours] == [2, 1]
    assert "not finite at step 2" in drawn.words
    drawn = plot(Series("loss", (1.0, 50.0, 1e6), (1.0, 2.0, 3.0)))
    heights = [y for _, y in points(drawn.reference)]
    assert max(heights) - min(heights) > (BOTTOM - TOP) / 4
    assert [(mark.y, mark.label) for mark in drawn.marks] == [(TOP, "above")]


@pytest.mark.parametrize(
    "yours", [(1e9,) * 3, (-LARGEST, 0.0, LARGEST), (0.0,) * 3, (1e-12, 0.0, 1.0), (None,) * 3, (5.0,) * MAX_STEPS]
)
@pytest.mark.parametrize("reference", [(0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (-1e9, 0.0, 1e9), (1e-9, 2e-9, 3e-9)])
def test_every_point_and_tick_stands_inside_frame(
    yours: tuple[float | None, ...], reference: tuple[float, ...]
) -> None:
    drawn = plot(Series("y", yours, reference))
    everything = [pair for line in (*drawn.yours, drawn.reference) for pair in points(line)]
    assert all(LEFT <= x <= RIGHT_EDGE and TOP <= y <= BOTTOM for x, y in everything)
    assert all(TOP <= tick.y <= BOTTOM for tick in drawn.upward)
    assert all(LEFT <= tick.x <= RIGHT_EDGE for tick in drawn.across)
    assert len(drawn.upward) <= 9


# Curves, end to end


def test_solutions_curve_lies_on_reference_and_climbs(sandbox: Sandbox) -> None:
    report, details = GRADER.grade_and_show(submission(SOLUTION), sandbox)
    assert (report.points, details.pictures) == (100, ())
    (curve,) = details.curves
    reward, loss = curve.series
    assert (curve.message, reward.what, loss.what) == ("", "mean reward", "loss")
    for series in (reward, loss):
        assert np.allclose(np.array(series.yours, dtype=float), series.reference, atol=2e-3)
    assert len(reward.yours) == 8
    assert reward.reference[-1] > reward.reference[0] + 0.7


OWN_RUN = """

_run, _seen = run_policy_gradient, []
def run_policy_gradient(*prompts, **settings):
    is_curve = settings.get('kl_penalty') == 0.05
"""


def test_curve_costs_no_points_and_changes_no_report(sandbox: Sandbox) -> None:
    source = f"{SOLUTION}{OWN_RUN}    if is_curve:\n        raise RuntimeError('this is the curve')\n"
    source += "    return _run(*prompts, **settings)\n"
    report, details = GRADER.grade_and_show(submission(source), sandbox)
    assert report.points == 100
    assert details.curves[0].series == ()
    assert details.curves[0].message.startswith("run_policy_gradient raised RuntimeError: this is the curve.")
    assert without_times(GRADER.grade(submission(source), sandbox)) == without_times(report)


def test_curve_carries_no_hidden_input_out(sandbox: Sandbox) -> None:
    """A submission that notes every prompt it is called with, and returns their count as its curve."""
    source = f"{SOLUTION}{OWN_RUN}    finished = _run(*prompts, **settings)\n    _seen.append(prompts)\n"
    source += "    for one in finished.records * is_curve:\n"
    source += "        object.__setattr__(one, 'loss', float(len(_seen)))\n    return finished\n"
    _, details = GRADER.grade_and_show(submission(source), sandbox)
    assert details.curves[0].series[1].yours[0] == 1


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
def test_curve_that_cannot_be_drawn_says_why(outcome: Outcome, said: str) -> None:
    curve = curve_of(case(np.zeros(3)), outcome, 7.0)
    assert said in curve.message
    assert curve.series == ()


def test_wild_values_of_curve_are_gaps_or_cut() -> None:
    curve = curve_of(case(np.zeros(4)), saw(np.array([1e300, np.nan, -np.inf, 0.12345])), 7.0)
    assert curve.series[0].yours == (LARGEST, None, None, 0.123)

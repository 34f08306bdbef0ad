"""What the detectors see in a wrong array, and that they see nothing in noise, in right answers and in hostile ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.grading.clues import Wrong, describe
from autograder.grading.fixtures import Expectation
from autograder.sandbox.calls import Array

AXES = ("batch", "trial", "pos")
FEW = settings(max_examples=25, deadline=None)


def expected(array: Array, **more: Any) -> Expectation:
    plain = Expectation("value", "out", "the output", AXES[: array.ndim], "float64", 1e-6, 1e-8, array=array)
    return replace(plain, **more)


def told(wanted: Array, out: Any, **more: Any) -> str:
    """What one wrong array shows by itself."""
    sizes = dict(zip(AXES, wanted.shape, strict=False))
    return describe([Wrong(expected(wanted, **more), np.asarray(out), sizes)])


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    """Values of both signs, none near 0, no two alike."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 3.0, shape) * rng.permutation(np.resize([1, -1], int(np.prod(shape)))).reshape(shape)


SHAPES = st.sampled_from([(7,), (2, 5), (3, 4), (5, 2), (2, 5, 3), (4, 3, 2)])
ARRAYS = st.builds(drawn, SHAPES, st.integers(0, 10**6))
TABLES = st.builds(drawn, SHAPES.filter(lambda shape: len(shape) > 1), st.integers(0, 10**6))
SMALL = drawn((2, 5), 1)


# One change each


@given(ARRAYS)
@FEW
def test_a_wrong_sign_is_seen(wanted: Array) -> None:
    assert told(wanted, -wanted) == "Each of your values has the right size and the wrong sign."


@given(ARRAYS, st.sampled_from([0.1, 0.7, -0.5, 1.9, 11.0, -1e6]))
@FEW
def test_a_constant_factor_is_told_by_its_number(wanted: Array, factor: float) -> None:
    assert told(wanted, factor * wanted).startswith(f"Each of your values is {factor:.4g} times what it should be.")


@given(TABLES, st.sampled_from(["batch", "trial"]), st.booleans())
@FEW
def test_a_factor_that_is_the_size_of_an_axis_is_named_after_it(wanted: Array, axis: str, divided: bool) -> None:
    size = wanted.shape[AXES.index(axis)]
    names = f"{'divided by' if divided else 'times'} the size of {axis}?"
    sentence = told(wanted, wanted / size if divided else wanted * size)
    assert sentence.endswith(f"Is it the expected one {names}") or "Is it" not in sentence


@given(ARRAYS, st.sampled_from([0.25, -3.0, 1e3]))
@FEW
def test_a_constant_that_is_missing_is_seen(wanted: Array, amount: float) -> None:
    direction = "large" if amount > 0 else "small"
    assert told(wanted, wanted + amount) == f"Each of your values is {abs(amount):g} too {direction}."


@given(TABLES, st.integers(0, 1), st.integers(0, 10**6))
@FEW
def test_one_amount_or_one_factor_for_each_row_is_seen(wanted: Array, axis: int, seed: int) -> None:
    shape = tuple(1 if n == axis else size for n, size in enumerate(wanted.shape))
    each = np.random.default_rng(seed).uniform(2, 4, shape)
    if wanted.size - each.size < 3:
        return
    start = f"Along {AXES[axis]}, all your values are off by the same"
    assert told(wanted, wanted + each).startswith(f"{start} amount.")
    assert told(wanted, wanted * each).startswith(f"{start} factor.")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.exp, "the exponentials"),
        (np.square, "the squares"),
        (np.reciprocal, "the reciprocals"),
        (lambda x: np.log(np.abs(x)), "the logarithms"),
        (lambda x: np.sqrt(np.abs(x)), "the square roots"),
    ],
)
@given(wanted=ARRAYS)
@FEW
def test_elementary_functions_are_seen(function: Any, name: str, wanted: Array) -> None:
    wanted = np.abs(wanted) if name in ("the logarithms", "the square roots") else wanted
    assert told(wanted, function(wanted)) == f"Your values are {name} of the expected ones."


@given(st.integers(2, 5), st.integers(0, 10**6))
@FEW
def test_equal_axes_that_are_interchanged_are_seen(size: int, seed: int) -> None:
    wanted = drawn((size + 1, size + 1, 2), seed)
    sentence = "Your values are the expected ones with trial and batch interchanged."
    assert told(wanted, wanted.transpose(1, 0, 2)) == sentence


@given(TABLES)
@FEW
def test_a_reshape_where_axes_should_be_interchanged_is_seen(wanted: Array) -> None:
    out = np.swapaxes(wanted, 0, 1).reshape(wanted.shape)
    assert "reshaping does not interchange trial and batch" in told(wanted, out)
    back = np.swapaxes(wanted.reshape(np.swapaxes(wanted, 0, 1).shape), 0, 1)
    assert "reshaping does not interchange" in told(wanted, back)


@given(TABLES)
@FEW
def test_axes_in_another_order_are_seen_by_the_shape(wanted: Array) -> None:
    out = np.swapaxes(wanted, 0, 1)
    order = " ".join(("trial", "batch", "pos")[: wanted.ndim])
    assert told(wanted, out) == f"The values are right, but the axes stand in the order [{order}]."


@given(TABLES, st.sampled_from([np.ravel, lambda x: x[..., None], lambda x: x[None]]))
@FEW
def test_right_values_in_a_wrong_shape_are_called_right(wanted: Array, change: Any) -> None:
    sentence = "The values are right and in the right order. Only the shape is wrong."
    assert told(wanted, change(wanted)) == sentence


@given(TABLES, st.integers(0, 1), st.booleans())
@FEW
def test_an_axis_that_was_summed_or_averaged_is_seen(wanted: Array, axis: int, keepdims: bool) -> None:
    if wanted.size // wanted.shape[axis] < 3:
        return
    for reduced, name in (
        (wanted.sum(axis, keepdims=keepdims), "summed"),
        (wanted.mean(axis, keepdims=keepdims), "averaged"),
    ):
        assert told(wanted, reduced) == f"Your values are the expected ones, {name} over {AXES[axis]}."


@given(ARRAYS)
@FEW
def test_values_that_do_not_change_are_seen(wanted: Array) -> None:
    assert told(wanted, np.zeros_like(wanted)) == "All your values are zero."
    assert told(wanted, np.full_like(wanted, 0.3)) == "All your values are the same, but they should not be."


def test_an_axis_along_which_nothing_changes_is_named() -> None:
    out = np.broadcast_to(drawn((2, 1), 5), (2, 5))
    assert told(SMALL, out) == "Your values do not change along trial, but they should."


def test_where_only_values_of_one_kind_are_wrong_the_kind_is_named() -> None:
    wanted = drawn((4, 6), 2)
    wanted[1, :3] = 0
    noise = np.random.default_rng(0).normal(size=wanted.shape)
    for where, name in ((wanted == 0, "zero"), (wanted < 0, "negative"), (wanted > 0, "positive")):
        out = np.where(where, wanted + noise, wanted)
        assert told(wanted, out) == f"Only values that should be {name} are wrong."
    clipped = np.maximum(wanted, 0)
    assert told(wanted, clipped) == "Only values that should be negative are wrong: yours are zero there."


def test_where_values_are_not_finite_is_told_by_what_they_should_be() -> None:
    wanted = drawn((3, 5), 4)
    wanted[1] = 0
    out = np.where(wanted == 0, np.nan, wanted)
    sentence = "Yours is not a finite number only where the values along trial should all be the same."
    assert told(wanted, out) == sentence
    scattered = drawn((3, 5), 4)
    scattered[[0, 1, 2], [3, 0, 1]] = 0
    sentence = "Yours is not a finite number only where it should be zero."
    assert told(scattered, np.where(scattered == 0, np.inf, scattered)) == sentence
    assert told(wanted, np.full_like(wanted, np.nan)) == "None of your values is finite."


@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "half"), (np.float32, "single")])
def test_digits_that_were_lost_are_seen(dtype: Any, name: str) -> None:
    wanted = drawn((3, 5), 6)
    out = wanted.astype(dtype).astype(np.float64)
    text = told(wanted, out, rtol=1e-12, atol=1e-12)
    assert text == f"Each of your values has lost digits: something was computed in {name} precision."


# Nothing without evidence


def test_unrelated_noise_is_never_described() -> None:
    rng = np.random.default_rng(20)
    shapes = [(), (3,), (6,), (2, 5), (3, 4), (1, 5), (2, 2), (4, 4), (2, 5, 3), (3, 3, 3)]
    for trial in range(2_000):
        shape = shapes[trial % len(shapes)]
        wanted, out = rng.normal(size=shape), rng.normal(size=shape)
        if trial % 4 == 1:  # half of it right
            out = np.where(rng.random(shape) < 0.5, wanted, out)
        if trial % 4 == 2:  # rewards are multiples of a quarter
            wanted, out = np.round(wanted * 8) / 4, np.round(out * 8) / 4
        assert told(wanted, out) == "", (trial, wanted, out)


# Hostile answers


@given(
    hnp.arrays(
        hnp.floating_dtypes() | hnp.integer_dtypes() | hnp.boolean_dtypes(), hnp.array_shapes(min_dims=0, max_dims=4)
    ),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4)),
)
@settings(max_examples=150, deadline=None)
def test_any_answer_to_any_question_is_taken(out: Array, wanted: Array) -> None:
    assert len(told(wanted, out)) < 300
    assert len(told(wanted, np.resize(out, wanted.shape))) < 300


# Several cases


def wrongs(*pairs: tuple[Array, Array]) -> list[Wrong]:
    return [Wrong(expected(wanted), out, dict(zip(AXES, wanted.shape, strict=False))) for wanted, out in pairs]


def test_a_clue_must_show_in_every_case() -> None:
    first, second = drawn((2, 5), 1), drawn((3, 4), 2)
    assert describe(wrongs((first, -first), (second, -second)))
    assert describe(wrongs((first, -first), (second, second + 1))) == ""
    assert describe(wrongs((first, first * 5), (second, second + 1))) == ""


def test_cases_of_other_sizes_tell_an_axis_from_a_constant() -> None:
    first, second = drawn((2, 5), 1), drawn((3, 4), 2)
    named = describe(wrongs((first, first * 5), (second, second * 4)))
    assert (
        named
        == "Each of your values is the expected one times the size of trial. Is there a sum where a mean should be?"
    )
    constant = describe(wrongs((first, first * 5), (second, second * 5)))
    assert constant == "Each of your values is 5 times what it should be."
    neither = describe(wrongs((first, first * 5), (second, second * 7.3)))
    assert neither == "All your values are off by the same factor. What are they divided by?"


def test_scalars_of_two_cases_that_agree_are_evidence_and_one_scalar_is_none() -> None:
    sizes = ({"batch": 2, "trial": 5}, {"batch": 4, "trial": 3})
    scalars = [Wrong(expected(np.array(1.7)), np.array(1.7 * 5), sizes[0])]
    assert describe(scalars) == ""
    scalars.append(Wrong(expected(np.array(-0.83)), np.array(-0.83 * 3), sizes[1]))
    sentence = describe(scalars)
    assert sentence.startswith("Your value is the expected one times the size of trial.")


def test_a_gradient_bears_the_factor_of_one_scalar_out() -> None:
    slope = drawn((2, 5), 3)
    for gradient, claimed in ((2 * slope, True), (slope, False), (3 * slope, False)):
        wrong = Wrong(expected(np.array(1.7)), np.array(3.4), more=((expected(slope, kind="gradient"), gradient),))
        assert bool(describe([wrong])) == claimed

"""Mistakes that change what callers know of a function: the names of its parameters, and how they can be passed."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.authoring.catalogue import Correct, Mistake
from autograder.vocabulary.errors import FixtureError

SCALED = Correct("scaled", "def scaled(x, factor=2, *, factors=0):\n    return factor * x + factors\n")


def defined(mistake: Mistake) -> Any:
    names: dict[str, Any] = {}
    exec(mistake.source, names)
    return names[mistake.function]


@pytest.mark.parametrize(("name", "answer"), [("factor", 15), ("factors", 11)])
def test_renamed_parameter_computes_the_same_under_its_new_name(name: str, answer: int) -> None:
    renamed, _ = SCALED.with_other_parameters("scaled", name, "other")
    assert renamed.slug == "scaled-parameters-renamed"
    assert defined(renamed)(3, other=5) == answer
    with pytest.raises(TypeError, match=name):
        defined(renamed)(3, **{name: 5})


def test_positional_only_arguments_keep_their_defaults() -> None:
    _, by_place = SCALED.with_other_parameters("scaled", "factor", "other")
    scaled = defined(by_place)
    assert (scaled(3), scaled(3, 5, factors=1)) == (6, 16)
    with pytest.raises(TypeError, match="positional-only"):
        scaled(x=3)


@pytest.mark.parametrize(
    ("correct", "told"),
    [
        (SCALED, "scaled has no parameter 'x2'"),
        (Correct("named", "def named(*, x2):\n    return x2\n"), "no argument that can be passed by its place"),
    ],
)
def test_parameters_that_are_not_there_are_refused(correct: Correct, told: str) -> None:
    with pytest.raises(FixtureError, match=told):
        correct.with_other_parameters("slug", "x2", "other")

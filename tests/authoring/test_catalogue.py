"""Mistakes that change what callers know of a function: the names of its parameters, and how they can be passed."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.authoring.catalogue import Correct, Mistake
from autograder.vocabulary.errors import FixtureError

SCALED = Correct("scaled", "def scaled(x, factor=2, *, shift=0):\n    return factor * x + shift\n")


def defined(mistake: Mistake) -> Any:
    names: dict[str, Any] = {}
    exec(mistake.source, names)
    return names[mistake.function]


@pytest.mark.parametrize(("name", "other"), [("factor", "times"), ("shift", "plus")])
def test_renamed_parameter_computes_the_same_under_its_new_name(name: str, other: str) -> None:
    scaled = defined(SCALED.renaming("renamed", "?", name, other))
    assert scaled(3, **{other: 5}) == SCALED_BY_HAND[name]
    with pytest.raises(TypeError, match=name):
        scaled(3, **{name: 5})


SCALED_BY_HAND = {"factor": 15, "shift": 11}


def test_name_is_replaced_as_a_whole_word() -> None:
    longer = Correct("scaled", "def scaled(x, xs):\n    return x + xs\n")
    assert defined(longer.renaming("renamed", "?", "x", "value"))(1, xs=2) == 3


def test_what_is_no_parameter_is_not_renamed() -> None:
    with pytest.raises(FixtureError, match="scaled has no parameter 'other'"):
        SCALED.renaming("renamed", "?", "other", "another")


def test_positional_only_arguments_keep_their_defaults() -> None:
    scaled = defined(SCALED.by_place_alone("by-place", "?"))
    assert (scaled(3), scaled(3, 5, shift=1)) == (6, 16)
    with pytest.raises(TypeError, match="positional-only"):
        scaled(x=3)


def test_function_without_positional_arguments_has_no_such_mistake() -> None:
    with pytest.raises(FixtureError, match="no argument that can be passed by its place"):
        Correct("named", "def named(*, x):\n    return x\n").by_place_alone("by-place", "?")

"""Which definition of a graded function counts: cells are found by nbgrader's names, then by function."""

from __future__ import annotations

import json

import pytest

from autograder.submissions.notebook import Text, notebook_text

STUB = "def f(x):\n    '''Return x.'''\n    raise NotImplementedError()"


def cell(source: str, grade_id: str | None = None) -> dict[str, object]:
    metadata = {} if grade_id is None else {"nbgrader": {"grade_id": grade_id, "solution": True}}
    return {"cell_type": "code", "execution_count": None, "outputs": [], "metadata": metadata, "source": source}


def read(*cells: dict[str, object], graded: tuple[str, ...] = ("f",)) -> Text:
    return notebook_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), "m", graded)


def value(text: Text) -> object:
    names: dict[str, object] = {}
    exec(text.source, names)
    return names["f"](1)  # type: ignore[operator]


def test_the_answer_cell_counts_before_an_experiment_below_it() -> None:
    text = read(cell("def f(x): return 'answer'", "f"), cell("def f(x): return 'experiment'"))
    assert value(text) == "answer"
    assert text.notes == ("cells 1 and 2 define f: that of cell 1 counts",)


def test_an_answer_in_a_cell_of_ones_own_counts_where_the_answer_cell_was_left_alone() -> None:
    for cells in ([cell(STUB, "f"), cell("def f(x): return 2")], [cell("def f(x): return 2"), cell(STUB, "f")]):
        text = read(*cells)
        assert value(text) == 2
        assert text.notes == ()


def test_of_a_cell_copied_with_its_name_the_last_counts() -> None:
    assert value(read(cell("def f(x): return 1", "f"), cell("def f(x): return 2", "f"))) == 2


def test_without_names_the_last_counts() -> None:
    assert value(read(cell("def f(x): return 1"), cell("def f(x): return 2"))) == 2


@pytest.mark.parametrize("name", ["g", "", "no such cell", "../../f"])
def test_a_cell_under_another_cells_name_is_found_by_its_function(name: str) -> None:
    text = read(cell("def g(x): return 0", "f"), cell("def f(x): return 1", name), graded=("f", "g"))
    assert value(text) == 1


def test_an_answer_that_builds_on_an_earlier_one_still_finds_it() -> None:
    text = read(cell("def f(x): return 1"), cell("first = f"), cell("def f(x): return first(x) + 1", "f"))
    assert value(text) == 2


def test_helpers_defined_twice_are_noted_and_the_last_counts() -> None:
    text = read(cell("def h(): return 1"), cell("def h(): return 2"), cell("def f(x): return h()", "f"))
    assert value(text) == 2
    assert text.notes == ("cells 1 and 2 define h: the last one counts",)


@pytest.mark.parametrize("metadata", [None, [], {"nbgrader": 3}, {"nbgrader": {"grade_id": ["f"]}}, {"nbgrader": None}])
def test_metadata_of_any_shape_costs_nothing(metadata: object) -> None:
    assert value(read({**cell("def f(x): return 1"), "metadata": metadata})) == 1


def test_what_only_raises_for_want_of_an_answer_is_still_read_where_there_is_nothing_else() -> None:
    with pytest.raises(NotImplementedError):
        value(read(cell(STUB, "f")))

"""Trials that are simpler than one which is known to go wrong: fewer entries first, then simpler numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from autograder.grading.counterexamples.trials import Trial
from autograder.sandbox.calls import Array

LONG = 4  # an axis of more entries is halved
LARGEST = 1e30  # beyond which there is nothing to round
MANY = 16  # of more numbers none is changed by itself


def simpler(trial: Trial) -> list[Trial]:
    """All that one step leads to and that cost less, the cheapest first."""
    steps = [*_shorter(trial), *_single_precision(trial), *_rounder(trial)]
    return sorted((step for step in steps if step.cost < trial.cost), key=lambda step: step.cost)


def _shorter(trial: Trial) -> Iterator[Trial]:
    """Half of a long axis; of a short one all but one entry, or only one."""
    for axis, size in trial.sizes.items():
        least = trial.least.get(axis, 1)
        if size > LONG and size // 2 >= least:
            yield from (_taken(trial, axis, list(half)) for half in (range(size // 2), range(size // 2, size)))
            continue
        if size > 2 and least == 1:
            yield from (_taken(trial, axis, [index]) for index in range(size))
        if size > least:
            yield from (_taken(trial, axis, [i for i in range(size) if i != index]) for index in range(size))


def _taken(trial: Trial, axis: str, kept: list[int]) -> Trial:
    inputs = dict(trial.inputs)
    for name, axes in trial.axes.items():
        for position, found in enumerate(axes.split()):
            if found == axis:
                inputs[name] = np.take(inputs[name], kept, axis=position)
    return replace(trial, inputs=inputs)


def _single_precision(trial: Trial) -> Iterator[Trial]:
    """All in float32, or none: what a call of two dtypes does is another question."""
    wide = [name for name, array in trial.inputs.items() if array.dtype == np.float64]
    if wide and not set(wide) & set(trial.fixed):
        with np.errstate(over="ignore"):
            narrow = {name: trial.inputs[name].astype(np.float32) for name in wide}
        if all(np.array_equal(np.isfinite(one), np.isfinite(trial.inputs[name])) for name, one in narrow.items()):
            yield replace(trial, inputs=_with(trial.inputs, narrow))


def _rounder(trial: Trial) -> Iterator[Trial]:
    """One input with simpler numbers throughout, or at one place."""
    for name, array in trial.inputs.items():
        if name in trial.fixed:
            continue
        for changed in (*_throughout(array), *(_somewhere(array) if array.size <= MANY else ())):
            if not np.array_equal(changed, array):
                yield replace(trial, inputs=_with(trial.inputs, {name: changed}))


def _throughout(array: Array) -> Iterator[Array]:
    yield np.zeros_like(array)
    yield np.ones_like(array)
    yield np.abs(array)
    if array.dtype.kind == "f" and (np.abs(array[np.isfinite(array)]) < LARGEST).all():
        yield np.round(array)
        yield np.round(array * 2) / 2
        yield np.round(array, 1)


def _somewhere(array: Array) -> Iterator[Array]:
    for index in np.ndindex(*array.shape):
        number = float(array[index])
        if not np.isfinite(number):
            continue
        for candidate in dict.fromkeys((0.0, 1.0, 2.0, abs(number), float(round(number)), float(int(number)))):
            changed = array.copy()
            changed[index] = candidate
            yield changed


def _with(inputs: Mapping[str, Array], changed: Mapping[str, Array]) -> dict[str, Array]:
    return {**inputs, **{name: np.asarray(array) for name, array in changed.items()}}  # NumPy makes scalars of 0 axes

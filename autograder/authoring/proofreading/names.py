"""What a case declares of its call: names, options and lists that there are."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, TypeVar

from autograder.authoring.declarations import DTYPES, Misnamed
from autograder.authoring.proofreading.fault import likely

R = TypeVar("R")


def check_options(tolerances: Mapping[str, Any], *, only_gradients: bool, judged: bool) -> None:
    """Raise Misnamed where a tolerance is no number, or gradients alone are to be judged and there are none."""
    for name, one in tolerances.items():
        if one is not None and (isinstance(one, bool) or not isinstance(one, numbers.Real) or not float(one) >= 0):
            raise Misnamed(f"{name} is {one!r}", f"a number that is not negative, such as {name}=1e-6")
    if only_gradients and not judged:
        raise Misnamed(
            "only_gradients=True, and there are no leaves", "leaves=(…) with the inputs whose gradients count"
        )


def check_lists(lists: Mapping[str, Any]) -> None:
    """Raise Misnamed where names that are to be listed are one text, whose letters nobody meant."""
    for key, names in lists.items():
        if isinstance(names, str):
            raise Misnamed(f"{key} is {names!r}", f'a list: {key}=["{names}"]')


def check_call(dtype: str, raises: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise Misnamed where a call is declared with what there is not."""
    named(dtype, dict.fromkeys(DTYPES), "the dtypes")
    if not isinstance(raises, Mapping):
        raise Misnamed(f"raises is of type {type(raises).__name__}", 'raises={"refused": ({"n": 0}, ["n"])}')
    for name, refusal in raises.items():
        right = f'raises={{"{name}": ({{"argument": what instead}}, ["a word of the message"])}}'
        is_pair = isinstance(refusal, tuple) and len(refusal) == 2 and isinstance(refusal[0], Mapping)
        if not is_pair or not isinstance(refusal[1], list | tuple):
            raise Misnamed("raises is a pair of a dictionary and a list", right)
        for one in refusal[0]:
            named(one, arguments, "the arguments of the call")


def named(name: str, there: Mapping[str, R], what: str) -> R:
    """What stands under that name; raises Misnamed where nothing does."""
    if name not in there:
        raise Misnamed(f"{name!r} is not among {what}", likely(name, there))
    return there[name]

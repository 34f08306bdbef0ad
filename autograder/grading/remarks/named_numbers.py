"""Factors and amounts that have a name: what the sizes of axes make, and logarithms to another base."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from autograder.grading.remarks.clues import Wrong
from autograder.grading.remarks.evidence import Clue

LESS = "over one less than that"
SMALL = 3  # of sizes up to this one, such a quotient is 2 or 1.5, which other causes have as well


def names_of(
    found: Sequence[Clue], wrongs: Sequence[Wrong], named: Callable[[Mapping[str, int]], Mapping[str, float]]
) -> list[str]:
    """What the number of every case may be called."""
    long = {axis for wrong in wrongs for axis, size in wrong.sizes.items() if size > 1}
    fitting = [
        {
            name
            for name, number in named({axis: size for axis, size in wrong.sizes.items() if axis in long}).items()
            if abs(abs(clue.number) - number) <= clue.precision * max(number, 1.0)
        }
        for clue, wrong in zip(found, wrongs, strict=True)
    ]
    small = [axis for axis in long if max(wrong.sizes.get(axis, 0) for wrong in wrongs) <= SMALL]
    chance = tuple(f"{_size_of([axis])} {LESS}" for axis in small)
    return sorted(name for name in set.intersection(*fitting) if not name.endswith(chance))


def products(sizes: Mapping[str, int]) -> dict[str, float]:
    """`the size of trial`, `the sizes of batch and trial`, … → the product."""
    groups = [names for count in range(1, len(sizes) + 1) for names in itertools.combinations(sizes, count)]
    return {_size_of(names): float(math.prod(sizes[name] for name in names)) for names in groups}


def divisions(sizes: Mapping[str, int]) -> dict[str, float]:
    """How to take such a factor out again → the factor."""
    named = products(sizes)
    found = {f"Divide by {name}": number for name, number in named.items()}
    return found | {f"Multiply by {name}": 1 / number for name, number in named.items()}


def factors(sizes: Mapping[str, int]) -> dict[str, float]:
    """The factors that have a name, made of these sizes."""
    found = {
        "a logarithm to base two where the natural one should be": 1 / math.log(2),
        "a logarithm to base ten where the natural one should be": 1 / math.log(10),
    }
    named = products(sizes)
    for name, size in sizes.items():
        less, smaller = f"{_size_of([name])} {LESS}", max(size - 1, 1)
        named |= {f"the square root of {_size_of([name])}": math.sqrt(size), less: size / smaller}
        named[f"the square root of {less}"] = math.sqrt(size / smaller)
    for name, number in named.items():
        found |= {f"the expected one times {name}": number, f"the expected one divided by {name}": 1 / number}
    for above, below in itertools.permutations(sizes, 2):
        found[f"the expected one times {_size_of([above])} over {_size_of([below])}"] = sizes[above] / sizes[below]
    return found


def _size_of(names: Sequence[str]) -> str:
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"the size of {listed}" if len(names) == 1 else f"the sizes of {listed}"

"""Habits with random numbers: NumPy's global state for the generator that was given, a seed of one's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.authoring.exam.graded_text import Change, GradedText, called

METHODS = (
    "random", "choice", "permutation", "shuffle", "normal", "standard_normal", "uniform", "binomial", "multinomial",
    "exponential", "gamma", "beta", "dirichlet", "poisson",
)  # fmt: skip
GLOBAL = {**dict(zip(METHODS, METHODS, strict=True)), "integers": "randint"}  # of a Generator, and of np.random


def global_random_state(graded: GradedText) -> Iterator[Change]:
    """`np.random.normal` for `rng.normal`: whoever gave the generator does not get its numbers."""
    if graded.values != "numpy":
        return
    for node in graded.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        method, owner = node.func.attr, node.func.value
        if method in GLOBAL and isinstance(owner, ast.Name) and owner.id in _generators(graded):
            yield (graded.replace(node.func, f"np.random.{GLOBAL[method]}"),)


def own_seed(graded: GradedText) -> Iterator[Change]:
    """A generator of one's own where one was given, or with a seed that nobody asked for, or with none."""
    if graded.values != "numpy":
        return
    for name in (name for name in _generators(graded) if name in graded.parameters):
        yield (graded.before(graded.body[0], f"{name} = np.random.default_rng(0)"),)
    for node in graded.nodes:
        if called(node) == "default_rng" and isinstance(node, ast.Call):
            for seed in ("", "0"):
                yield (graded.replace(node, f"{graded.text(node.func)}({seed})"),)


def _generators(graded: GradedText) -> list[str]:
    """Names of the function that hold a generator: annotated or called so, or made here."""
    given = [n for n, (kind, _) in graded.parameters.items() if "Generator" in kind or n in ("rng", "generator")]
    made = [
        one.targets[0] for one in graded.nodes if isinstance(one, ast.Assign) and called(one.value) == "default_rng"
    ]
    return [*given, *(one.id for one in made if isinstance(one, ast.Name))]

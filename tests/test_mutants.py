"""First-order mutants of the solution: mutmut changes one thing in one of the six functions, and points must be lost.

Points are lost by at least 99 in 100 of those that are not equivalent. EQUIVALENT lists the others by the line that
the change leaves, with the reason; none of them may lose a point.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst
import pytest
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from autograder.batch import in_sandboxes
from autograder.build import solution_source
from autograder.fixtures import read_fixtures
from autograder.grading import Grader
from autograder.items import find_assignment
from autograder.report import Report
from autograder.sandbox import Sandbox
from autograder.submission import Submission

ASSIGNMENT = find_assignment("policy_gradient")
SOLUTION = solution_source(ASSIGNMENT)
GRADERS = [Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT, hidden=hidden)) for hidden in (False, True)]

SAME_LENGTH = "there are as many prompts as groups of responses, by the shapes"
FLOAT32 = "Python floats become float32 by torch's default"
CPU = "no device means the CPU, where the responses are"
TWO_AXES = "rewards have two axes: the last is axis 1"
FREE_TEXT = "the contract asks for a ValueError; its text is free but for the name of an unknown mode"
AXIS_NAMES = "einops axis names are local to their pattern"
ON_SCREEN = "only what the terminal shows depends on it"
UNREAD = "log-probs are computed under no_grad that the naive loss then does not read"

EQUIVALENT = {
    "for prompt, trials in zip(prompts, responses, strict=None)": SAME_LENGTH,
    "for prompt, trials in zip(prompts, responses, strict=False)": SAME_LENGTH,
    "for prompt, trials in zip(prompts, responses, )": SAME_LENGTH,
    "return torch.tensor(rewards, dtype=None, device=responses.device)": FLOAT32,
    "return torch.tensor(rewards, device=responses.device)": FLOAT32,
    "return torch.tensor(rewards, dtype=torch.float32, device=None)": CPU,
    "return torch.tensor(rewards, dtype=torch.float32, )": CPU,
    "return torch.where(rewards == rewards.amax(dim=+1, keepdim=True), rewards, torch.zeros_like(rewards))": TWO_AXES,
    "centered = rewards - rewards.mean(dim=+1, keepdim=True)": TWO_AXES,
    "if rewards.shape[+1] < 2:": TWO_AXES,
    "return centered / (rewards.std(dim=+1, keepdim=True) + EPS)": TWO_AXES,
    "raise ValueError(None)": FREE_TEXT,
    'raise ValueError("XXnormalized_rewards needs at least two responses: one has no spreadXX")': FREE_TEXT,
    'raise ValueError("NORMALIZED_REWARDS NEEDS AT LEAST TWO RESPONSES: ONE HAS NO SPREAD")': FREE_TEXT,
    'deltas = rearrange(deltas.detach(), "BATCH TRIAL -> BATCH TRIAL 1")': AXIS_NAMES,
    'return reduce(per_token, "BATCH TRIAL POS -> BATCH TRIAL", "sum").mean()': AXIS_NAMES,
    "progress: bool = False,": ON_SCREEN,
    "for epoch in progress_bar(range(num_epochs), None):": ON_SCREEN,
    'if loss_mode != "XXnaiveXX":': UNREAD,
    'if loss_mode != "NAIVE":': UNREAD,
}
# `raise ValueError(None)` also stands where an unknown mode must be named: there it is no equivalent.
NAMES_THE_MODE = 'raise ValueError(f"Unknown'


@dataclass(frozen=True)
class Mutant:
    """The solution with one change in one function."""

    function: str
    source: str

    @cached_property
    def change(self) -> tuple[str, str]:
        """The changed line before and after, without indentation and comment."""
        lines = difflib.ndiff(SOLUTION.splitlines(), self.source.splitlines())
        pairs = {line[0]: line[2:].partition("  #")[0].strip() for line in lines if line[0] in "-+"}
        return pairs.get("-", ""), pairs.get("+", "")

    @property
    def is_equivalent(self) -> bool:
        before, after = self.change
        return after in EQUIVALENT and not before.startswith(NAMES_THE_MODE)


def mutants() -> Iterator[Mutant]:
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(SOLUTION)).visit(visitor)
    for mutation in visitor.mutations:
        if mutation.contained_by_top_level_function is not None:
            mutated = deep_replace(module, mutation.original_node, mutation.mutated_node)
            yield Mutant(mutation.contained_by_top_level_function.name.value, mutated.code)


MUTANTS = list(mutants())


def survives(mutant: Mutant, sandbox: Sandbox) -> bool:
    """Whether the mutant earns all points of its function, first on the public cases, then on all."""
    items = [item for item in ASSIGNMENT.items if item.function == mutant.function]
    submission = Submission("mutant", "policy_gradient.py", "", mutant.source)
    return all(earns_all(grader.grade(submission, sandbox, items=items)) for grader in GRADERS)


def earns_all(report: Report) -> bool:
    assert report.status == "graded", report.items[0].message
    return report.points == report.max_points


@pytest.fixture(scope="module")
def survivors() -> list[Mutant]:
    fates = in_sandboxes(survives, MUTANTS, jobs=2)
    return [mutant for mutant, survived in zip(MUTANTS, fates, strict=True) if survived]


def test_every_function_has_mutants_and_they_all_differ() -> None:
    found = Counter(mutant.function for mutant in MUTANTS)
    assert set(found) == set(ASSIGNMENT.functions)
    assert min(found.values()) > 10
    assert len({mutant.source for mutant in MUTANTS} | {SOLUTION}) == len(MUTANTS) + 1


def test_the_table_of_equivalents_lists_nothing_that_is_not_made() -> None:
    assert set(EQUIVALENT) == {mutant.change[1] for mutant in MUTANTS if mutant.is_equivalent}


@pytest.mark.timeout(600)
def test_at_least_99_in_100_mutants_lose_points(survivors: list[Mutant]) -> None:
    judged = [mutant for mutant in MUTANTS if not mutant.is_equivalent]
    alive = [mutant for mutant in survivors if not mutant.is_equivalent]
    told = "\n".join(f"{mutant.function}: {' → '.join(mutant.change)}" for mutant in alive)
    assert len(alive) <= 0.01 * len(judged), f"{len(alive)} of {len(judged)} lose nothing:\n{told}"


def test_no_equivalent_mutant_loses_a_point(survivors: list[Mutant]) -> None:
    equivalent = [mutant for mutant in MUTANTS if mutant.is_equivalent]
    assert [mutant.change for mutant in equivalent if mutant not in survivors] == []

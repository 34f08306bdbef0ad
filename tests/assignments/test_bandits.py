"""The bandits: a fault costs its own item, and where one function is wrong the run that may call it says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from all_assignments import generator_of
from places import KIT

from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.assignments import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import ItemResult

BANDITS = find_assignment(KIT, "bandits")
SOLUTION = solution_source(BANDITS)
GREEDY = generator_of("bandits")["mistakes"].GREEDY
Lost = Callable[[str], dict[str, ItemResult]]
CALLING = """
def epsilon_greedy_run(rewards, epsilon, uniforms):
    estimates, counts = np.zeros(rewards.shape[1:]), np.zeros(rewards.shape[1:], dtype=np.int64)
    actions = []
    for offered, drawn in zip(rewards, uniforms):
        actions.append(epsilon_greedy(estimates, epsilon, drawn))
        earned = offered[np.arange(len(offered)), actions[-1]]
        estimates, counts = update_values(estimates, counts, actions[-1], earned)
    return np.stack(actions, axis=1), estimates
"""


@pytest.fixture(scope="module")
def lost() -> Lost:
    """Grade the solution with these later definitions; the items that lose points, by id."""

    def graded(*later: str) -> dict[str, ItemResult]:
        grader = Grader.of(BANDITS, read_fixtures(BANDITS), counterexamples=False)
        with Sandbox() as sandbox:
            report = grader.grade(Submission("ada", "bandits.py", "", "\n\n".join([SOLUTION, *later])), sandbox)
        return {item.item: item for item in report.items if item.points != item.max_points}

    return graded


def test_a_run_that_calls_the_other_functions_earns_everything(lost: Lost) -> None:
    assert lost(CALLING) == {}


@pytest.mark.parametrize(
    ("slug", "items"),
    [
        ("arguments-overwritten", {"update-form"}),
        ("counts-overwritten", {"update-form"}),
        ("counts-are-floats", {"update-form"}),
        ("greedy-actions-are-floats", {"greedy-form"}),
        ("preferences-shifted", {"gradient-form"}),
        ("nearly-equal-is-equal", {"greedy-ties"}),
        ("mean-of-zero-is-none", {"update-values"}),
        ("step-before", {"ucb-values"}),
        ("untried-by-their-estimates", {"ucb-untried"}),
        ("preferences-clipped", {"gradient-far"}),
    ],
)
def test_a_mistake_against_one_sentence_costs_the_item_that_is_about_it(slug: str, items: set[str], lost: Lost) -> None:
    mistake = next(one for one in generator_of("bandits")["mistakes"].MISTAKES if one.slug == slug)
    found = lost(mistake.source)
    assert found.keys() == items
    assert all(item.mistakes == (slug,) for item in found.values())


def test_what_is_wrong_in_a_called_function_is_where_a_run_should_start(lost: Lost) -> None:
    found = lost(GREEDY.but("of-a-test", "", ("< epsilon", "<= epsilon")).source, CALLING)
    assert found.keys() == {"greedy-ties", "run-greedy"}
    assert found["run-greedy"].hint == "greedy-ties fails too: if you call epsilon_greedy here, start there."


def test_a_run_that_is_wrong_by_itself_keeps_its_own_hint(lost: Lost) -> None:
    backwards = CALLING.replace("zip(rewards, uniforms)", "zip(rewards[::-1], uniforms)")
    assert lost(backwards)["run-actions"].hint.startswith("At which step do your actions depart")


def test_another_dtype_in_a_called_function_is_not_held_against_a_run(lost: Lost) -> None:
    backwards = CALLING.replace("zip(rewards, uniforms)", "zip(rewards[::-1], uniforms)")
    wrong = "def epsilon_greedy(*given, **named):\n    return old(*given, **named).astype(np.float32)\n"
    listed = f"old = epsilon_greedy\n\n\n{wrong}"
    found = lost(listed, backwards.replace("epsilon_greedy(estimates", "old(estimates"))
    assert "greedy-form" in found
    assert "start there" not in found["run-actions"].hint

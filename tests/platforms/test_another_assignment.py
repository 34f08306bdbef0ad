"""Work for another assignment of the course: known by the functions that it defines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_ins import put_all, zipped
from places import KIT

from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.platforms.layouts import gathered
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate, Submission

OURS, OTHER = find_assignment(KIT, "policy_gradient"), find_assignment(KIT, "bandits")
MODULE = (OTHER.solution / "bandits.py").read_bytes()
NOTEBOOK = (OTHER.handout / "bandits.ipynb").read_bytes()


ZIP = zipped({"bandits/bandits.py": MODULE, "bandits/bandits.ipynb": NOTEBOOK, "bandits/README.md": ""})
HANDED_IN: dict[str, dict[str, bytes]] = {
    "a folder with the module": {"ana/bandits.py": MODULE},
    "a folder in a folder": {"ana/bandits/bandits.py": MODULE, "ana/bandits/fixtures/bandits/untouched.py": MODULE},
    "under the name of ours": {"ana/policy_gradient.py": MODULE},
    "a notebook under the name of ours": {"ana/policy_gradient.ipynb": NOTEBOOK},
    "a zip": {"ana.zip": ZIP},
    "canvas": {"ana_1_5_bandits.py": MODULE, "ben_2_6_policy_gradient.py": b""},
}
OWN = {
    "our own": {"ana/policy_gradient.py": OURS.untouched_source().encode()},
    "our own beside the other": {"ana/policy_gradient.py": b"def compute_loss(): ...\n", "ana/bandits.py": MODULE},
    "our own and the other in one": {"ana/policy_gradient.py": MODULE + b"\n\ndef compute_loss(): ...\n"},
    "a part of the other": {"ana/policy_gradient.py": MODULE[: MODULE.index(b"def gradient_update")]},
    "nothing": {"ana/policy_gradient.py": b"x = 1\n"},
}


def grader_of(assignment: Assignment) -> Grader:
    return Grader.of(assignment, read_fixtures(assignment), counterexamples=False)


GRADER = grader_of(OURS)


def read_by(grader: Grader, candidate: Candidate) -> Submission:
    return read_limited(candidate, grader.assignment.module, "", grader.functions_of_course)


@pytest.mark.parametrize("name", HANDED_IN | OWN)
def test_work_for_another_assignment_is_named(tmp_path: Path, name: str) -> None:
    put_all(tmp_path, (HANDED_IN | OWN)[name])
    with gathered([tmp_path], OURS.module, functions=OURS.functions) as class_:
        candidate = next(one for one in class_.candidates if one.student.lower().startswith("ana"))
        problem = GRADER.meant_for_another(read_by(GRADER, candidate))
    start, end = "This is bandits, not policy_gradient: ", " defines epsilon_greedy, update_values, ucb and others."
    assert (problem.startswith(start) and problem.endswith(end)) if name in HANDED_IN else problem == ""


def test_names_that_two_assignments_share_hide_neither(tmp_path: Path) -> None:
    theory = find_assignment(KIT, "policy_gradient_theory")
    ours = find_assignment(KIT, "grpo_language_model")  # which grades a `group_advantages` too
    (tmp_path / "grpo_language_model.py").write_text(theory.untouched_source())
    with gathered([tmp_path], ours.module) as class_:
        [candidate] = class_.candidates
        grader = grader_of(ours)
        assert grader.meant_for_another(read_by(grader, candidate)).startswith("This is policy_gradient_theory")

"""What runs always, what only `pytest -m long` runs, and what is begun first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

LONGEST = (  # by processor time, in short first: a file begun last would keep a core busy alone
    "test_exam", "test_attacks", "test_browser", "test_counterexamples", "test_grader",
    "test_sandbox", "test_new", "test_terms", "test_without_torch", "test_main",
    "test_similarity", "test_isolation", "test_scripts", "test_names",
    "test_batch", "test_bundles", "test_machines", "test_student_pages", "test_worker",
    "test_every_assignment", "test_contract", "test_live_browser", "test_cli_exports",
    "test_exam_mutants", "test_cluster", "test_generator", "test_honest", "test_live",
    "test_golden", "test_interpreter", "test_cases", "test_frames", "test_pages", "test_unearned",
    "test_practice_study", "test_hidden_cases", "test_source_notebook", "test_check", "test_release",
    "test_verify", "test_odd_answers", "test_benchmarks", "test_course_option",
    "test_doctor", "test_architecture",
)  # fmt: skip


def in_short(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values for `parametrize`, of which the first `count` are tried always and all others in long."""
    listed = list(values)
    return [*listed[:count], *(_long(value) for value in listed[count:])]


def _long(value: Any) -> Any:
    return pytest.param(*(value if type(value) is tuple else (value,)), marks=pytest.mark.long)

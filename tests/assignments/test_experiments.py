"""The experiments of policy_gradient: their table, figures and logs."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from lengths import in_short
from places import KIT

from autograder.grading.assignment import find_assignment

EXPERIMENTS = find_assignment(KIT, "policy_gradient").solution / "experiments.py"  # each assignment has its own
SPEC = importlib.util.spec_from_file_location("experiments_of_policy_gradient", EXPERIMENTS)
assert SPEC is not None
assert SPEC.loader is not None
experiments = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(experiments)


@pytest.mark.parametrize(("figure", "runs"), in_short([("three_runs.png", 3), ("grid.png", 12)]))
def test_experiments_print_a_table_and_save_figures(monkeypatch, capsys, tmp_path, figure, runs):
    out = tmp_path / "o u t"
    options = ["--grid"] if figure == "grid.png" else []
    monkeypatch.setattr(sys, "argv", ["experiments.py", *options, "--epochs", "2", "--out", str(out)])
    experiments.main()
    assert len(re.findall(r"rewards +\w+ +\d\.\d{3}\n", capsys.readouterr().out)) == runs
    assert (out / figure).stat().st_size > 10_000
    logs = list(out.glob("*/log.txt"))
    assert len(logs) == runs
    for log in logs:
        assert log.read_text(encoding="utf-8").count("response [") == 15

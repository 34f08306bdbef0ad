"""The studies of the practice assignment: their numbers, their figures, and the text that speaks of them."""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from figures import save_study, save_wrong
from places import KIT
from real_model import Sizes, memory_table

from autograder.grading.assignment import find_assignment

FOLDER = find_assignment(KIT, "grpo_in_practice").solution
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
RESULTS = json.loads((FOLDER / "study.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def experiments() -> ModuleType:
    """The file of this assignment: others have one of the same name."""
    spec = importlib.util.spec_from_file_location("experiments_of_grpo_in_practice", FOLDER / "experiments.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the names of their annotations
    spec.loader.exec_module(module)
    return module


# Figures


@pytest.mark.long
def test_every_figure_is_drawn_from_the_stored_results(experiments: ModuleType, tmp_path: Path) -> None:
    for name, result in RESULTS["studies"].items():
        save_study(result, experiments.STUDIES[name].curves, tmp_path / f"study_{name}.png")
    curves = {name: experiments.WRONG[name].curves for name in RESULTS["wrong"]}
    save_wrong(RESULTS["wrong"], curves, tmp_path / "gone_wrong.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in FOLDER.glob("*.png"))
    for path in FOLDER.glob("*.png"):
        assert path.stat().st_size < 70_000
        assert f"({path.name})" in TEXT


# What the text says


@pytest.mark.parametrize("name", RESULTS["studies"])
def test_every_study_in_the_text_is_what_was_run(experiments: ModuleType, name: str) -> None:
    study, result = experiments.STUDIES[name], RESULTS["studies"][name]
    assert {arm: found["settings"] for arm, found in result["arms"].items()} == study.arms
    seeds = ["0", "1", "2", "3"]
    assert all(list(found["seeds"]) == seeds for found in result["arms"].values())
    assert experiments.table_of(result, study.curves) in TEXT
    assert f"{result['budget']}" in TEXT


def test_claims_about_the_studies_are_what_the_numbers_say(experiments: ModuleType) -> None:
    def difference(name: str, arm: str, curve: str = "") -> Any:
        arms = RESULTS["studies"][name]["arms"]
        measure = (lambda one: experiments.at_the_end(one, curve)) if curve else experiments.solved
        return experiments.paired_difference(measure(arms[arm]), measure(next(iter(arms.values()))))

    def mean(name: str, arm: str, curve: str) -> float:
        return statistics.mean(experiments.at_the_end(RESULTS["studies"][name]["arms"][arm], curve).values())

    stale, spread = difference("stale", "not stale"), difference("std", "mean")
    precise, kept, every = (
        difference(*one) for one in (("precision", "bfloat16, none"), ("dynamic", "8 of 16"), ("dynamic", "all 16"))
    )
    gap = mean("precision", "bfloat16, none", "sampler_gap")
    phrases = [
        f"The gap is {gap:.3f} nats per token, where that of the stale sampler was"
        f" {mean('stale', 'stale, none', 'sampler_gap'):.2f}",
        f"{kept.mean:.3f} of what is solved, with a standard error of {kept.standard_error:.3f}",
        f"{every.mean:.3f} more are solved",
        f"Ignoring the staleness costs {stale.mean:.3f} of what is solved",
        f"what is solved: {spread.mean:.3f}, with a standard error of {spread.standard_error:.3f}",
        f"{mean('std', 'mean', 'gradient_norm'):.2f} against {mean('std', 'mean_std', 'gradient_norm'):.2f}",
    ]
    assert [phrase for phrase in phrases if phrase not in " ".join(TEXT.split())] == []

    def errors(found: Any) -> float:
        return float(found.mean / found.standard_error)

    assert errors(precise) == pytest.approx(2.6, abs=0.1)
    assert errors(difference("precision", "bfloat16, none", "accuracy")) == pytest.approx(1.2, abs=0.05)
    assert min(difference("precision", arm).mean for arm in RESULTS["studies"]["precision"]["arms"]) >= 0
    ours, theirs = (
        experiments.solved(RESULTS["studies"]["precision"]["arms"][arm]) for arm in ("bfloat16, none", "float32")
    )
    gains = {seed: ours[seed] - theirs[seed] for seed in ours}
    assert max(gains.values()) / sum(gains.values()) == pytest.approx(0.5, abs=0.05)
    assert theirs[max(gains, key=gains.__getitem__)] == min(theirs.values())
    assert errors(difference("dynamic", "8 of 16", "accuracy")) < -2
    assert errors(every) == pytest.approx(5.5, abs=0.1)
    assert mean("dynamic", "8 of 8", "groups_without_signal") == pytest.approx(1 / 16, abs=0.003)
    assert errors(stale) == pytest.approx(6, abs=0.5)
    assert abs(errors(difference("entropy", "high 0.28", "entropy"))) < 1
    assert errors(difference("entropy", "high 0.6", "entropy")) == pytest.approx(1, abs=0.5)
    assert errors(difference("length", "sequence_mean", "wrong_response_length")) == pytest.approx(2.5, abs=0.2)
    assert abs(errors(difference("length", "sequence_mean"))) < 1
    assert abs(errors(difference("length", "constant_length"))) < 1.1
    assert errors(difference("kl", "in the loss", "accuracy")) < -6
    assert errors(difference("kl", "in the reward", "accuracy")) < -6
    assert min(errors(difference("kl", arm)) for arm in ("in the loss", "in the reward")) > -2
    assert errors(difference("stale", "stale, token")) == pytest.approx(1.5, abs=0.2)
    wide, narrow = (experiments.solved(RESULTS["studies"]["entropy"]["arms"][arm]) for arm in ("high 0.6", "high 0.2"))
    assert all(wide[seed] < narrow[seed] for seed in narrow)


def test_claims_about_the_runs_gone_wrong_are_what_the_curves_say() -> None:
    def ends(name: str, curve: str) -> tuple[float, float]:
        ((outcome,),) = ([*arm["seeds"].values()] for arm in RESULTS["wrong"][name]["arms"].values())
        first, last = (
            [value for value in part if value is not None]
            for part in (outcome["curves"][curve][:5], outcome["curves"][curve][-5:])
        )
        return statistics.mean(first), statistics.mean(last)

    def spoken(name: str, curve: str, words: str, digits: int = 2) -> str:
        return words.format(*(f"{value:.{digits}f}" for value in ends(name, curve)))

    phrases = [
        spoken("collapse", "entropy", "entropy is {} nats, over the last five {}"),
        spoken("collapse", "accuracy", "right responses fall from {} to {}"),
        spoken("length", "response_length", "Responses shrink from {} tokens to {}", 1),
        spoken("length", "accuracy", "so do right answers, from {} to {}"),
        spoken("hacking", "reward", "The reward rises from {} to {}"),
        spoken("hacking", "accuracy", "{1} after {0}"),
        spoken("hacking", "response_length", "responses grow from {} tokens to {}", 0),
        spoken("staleness", "accuracy", "{} over the first five steps and {} over the last five"),
    ]
    assert [phrase for phrase in phrases if phrase not in " ".join(TEXT.split())] == []


def test_the_table_of_memory_in_the_text_is_the_commands() -> None:
    assert memory_table(Sizes(), [(8, False), (8, True), (2, True)], 512) in TEXT
    assert Sizes().parameters == 494_032_768  # of Qwen2.5-0.5B
    assert "494 million" in TEXT


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_cells_of_the_notebook_run_with_the_functions_that_stand_above_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = tomllib.loads((FOLDER / "notebook.toml").read_text(encoding="utf-8"))["cell"]
    code = [cell["source"] for cell in cells if cell["kind"] == "code"]
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setitem(sys.modules, "grpo_in_practice", None)  # nothing but the cells may define it
    monkeypatch.delitem(sys.modules, "practice_loop")
    namespace: dict[str, Any] = {}
    source = (FOLDER / "grpo_in_practice.py").read_text(encoding="utf-8")
    exec(compile("\n".join([source, *code]).replace('"num_steps": 8', '"num_steps": 1'), "notebook", "exec"), namespace)
    assert sys.modules["practice_loop"].policy_loss is namespace["policy_loss"]

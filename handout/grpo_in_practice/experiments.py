"""What the options do, with your functions: several seeds, paired differences, one budget. Nothing to complete here.

    python experiments.py                        one run, with its curves: seconds to a minute
    python experiments.py --study                every study of the text, four seeds each: half an hour of one core
    python experiments.py --study entropy kl     some of them: minutes each
    python experiments.py --wrong                the four runs gone wrong of `Reading a training run`
    python experiments.py --show                 no run: figures and tables from what study.json holds

What was run is kept in study.json, from which figures are drawn and tables printed; `--out` names another folder.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from figures import save_study, save_wrong
from language_model import CausalLM
from practice_loop import Settings, TrainingRun, is_right, tagged_reward, train
from practice_task import (
    MAX_NEW_TOKENS,
    TERMS,
    PracticeTokenizer,
    Reward,
    answer_of,
    held_out_problems,
    sample_rollout,
    score_rollout,
)

HERE = Path(__file__).resolve().parent
CHECKPOINT, RESULTS = HERE / "checkpoint", HERE / "study.json"
SEEDS = (0, 1, 2, 3)
DIGITS = 3

Arms = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Study:
    """A question, the settings that it compares (the first is what the others are compared with), and what to draw."""

    question: str
    arms: Arms
    curves: tuple[str, ...]
    rewards: Mapping[str, str] = field(default_factory=dict)  # arm → name of its reward, where it is another


@dataclass(frozen=True)
class Outcome:
    """One run: its curves by name, and the shares of held-out problems that it then solves."""

    curves: Mapping[str, Sequence[float]]
    held_out: Mapping[str, float]
    seconds: float


def answer_occurs(problem: str, response: str) -> float:
    """Return 1 where the right number stands anywhere in the response: a verifier that can be hacked."""
    numbers = response.replace("\\boxed{", ">").replace("}", ">").replace(";", ">").split(">")
    return float(str(answer_of(problem)) in numbers)


REWARDS: Mapping[str, Reward] = {"tagged": tagged_reward, "answer_occurs": answer_occurs}

EIGHT_UPDATES = {"num_inner_steps": 8}  # with two, hardly any token reaches a bound
FASTER = {"learning_rate": 2e-4}
STALE = {**FASTER, "sampler_lag": 8}
WATCHED_KL = {"kl_in": "loss", "kl_coefficient": 0.0}
STUDIES: Mapping[str, Study] = {
    "entropy": Study(
        "Does a higher upper bound keep entropy up?",
        {
            "high 0.2": EIGHT_UPDATES,
            "high 0.28": {**EIGHT_UPDATES, "epsilon_high": 0.28},
            "high 0.6": {**EIGHT_UPDATES, "epsilon_high": 0.6},
        },
        ("entropy", "accuracy"),
    ),
    "length": Study(
        "Do wrong responses grow under sequence_mean?",
        {
            "token_mean": {},
            "sequence_mean": {"normalization": "sequence_mean"},
            "constant_length": {"normalization": "constant_length"},
        },
        ("response_length", "wrong_response_length"),
    ),
    "std": Study(
        "Divide by the standard deviation, or not?",
        {"mean_std": {}, "mean": {"advantage": "mean"}},
        ("accuracy", "gradient_norm"),
    ),
    "group": Study(
        "Many prompts with few responses, or few with many?",
        {
            "8 of 8": {},
            "16 of 4": {"num_prompts": 16, "num_responses": 4},
            "4 of 16": {"num_prompts": 4, "num_responses": 16},
        },
        ("accuracy", "gradient_norm"),
    ),
    "stale": Study(
        "A sampler eight steps old, with and without correction",
        {
            "stale, none": STALE,
            "stale, ratio": {**STALE, "correction": "ratio"},
            "stale, token": {**STALE, "correction": "token"},
            "stale, sequence": {**STALE, "correction": "sequence"},
            "not stale": FASTER,
        },
        ("accuracy", "sampler_gap"),
    ),
    "precision": Study(
        "A sampler that computes in bfloat16, with and without correction",
        {
            "float32": {},
            "bfloat16, none": {"sampler_dtype": "bfloat16"},
            "bfloat16, token": {"sampler_dtype": "bfloat16", "correction": "token"},
            "bfloat16, sequence": {"sampler_dtype": "bfloat16", "correction": "sequence"},
        },
        ("accuracy", "sampler_gap"),
    ),
    "dynamic": Study(
        "Leave out groups without signal, and sample until there are enough?",
        {
            "8 of 8": {},
            "8 of 16": {"oversample": 2},
            "all 16": {"num_prompts": 16},
        },
        ("accuracy", "groups_without_signal"),
    ),
    "kl": Study(
        "What a penalty for leaving the reference costs",
        {
            "none": WATCHED_KL,
            "in the loss": {"kl_in": "loss", "kl_coefficient": 0.3},
            "in the reward": {"kl_in": "reward", "kl_coefficient": 0.3},
        },
        ("approx_kl_ref", "accuracy"),
    ),
}


# Running


def outcome_of(settings: Settings, reward: str = "tagged") -> Outcome:
    """Train the checkpoint with these settings, and say how it went."""
    model = CausalLM.from_pretrained(CHECKPOINT)
    began = time.perf_counter()
    run = train(model, PracticeTokenizer(), settings, REWARDS[reward])
    seconds = time.perf_counter() - began
    return Outcome(curves_of(run), held_out_accuracy(model, settings.max_new_tokens), round(seconds))


def curves_of(run: TrainingRun) -> dict[str, list[float]]:
    """Return every recorded number by its name, one per step; a step without it has None."""
    names = sorted({name for record in run.records for name in record.values})
    return {name: [_rounded(record.values.get(name)) for record in run.records] for name in names}


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def held_out_accuracy(model: CausalLM, max_new_tokens: int = MAX_NEW_TOKENS) -> dict[str, float]:
    """Return the share of held-out problems of each difficulty that one sampled response each solves."""
    torch.manual_seed(0)
    found = {}
    for difficulty in TERMS:
        rollout = sample_rollout(model, PracticeTokenizer(), held_out_problems(difficulty), 1, max_new_tokens)
        found[difficulty] = round(score_rollout(rollout, is_right).mean().item(), DIGITS)
    return found


def run_study(study: Study, seeds: Iterable[int], base: Settings, done: dict[str, Any]) -> dict[str, Any]:
    """Return every arm's outcomes by seed, and print each when it is there; equal settings are run once.

    done   outcomes of earlier runs, by their settings; grows
    """
    arms: dict[str, Any] = {}
    for arm, options in study.arms.items():
        outcomes = {}
        for seed in seeds:
            settings = replace(base, seed=seed, **options)
            reward = study.rewards.get(arm, "tagged")
            key = json.dumps([asdict(settings), reward])
            if key not in done:
                done[key] = asdict(outcome_of(settings, reward))
            outcomes[str(seed)] = done[key]
            shares = "  ".join(f"{name} {share:.3f}" for name, share in done[key]["held_out"].items())
            print(f"  {arm:<22}seed {seed}   {shares}   {done[key]['seconds']:.0f} s", flush=True)
        arms[arm] = {"settings": dict(options), "seeds": outcomes}
    first = replace(base, **next(iter(study.arms.values())))
    return {"question": study.question, "budget": budget(first), "arms": arms}


def budget(settings: Settings) -> str:
    """Return what a run may use, in words."""
    responses = settings.num_prompts * settings.num_responses
    return f"{settings.num_steps} steps of {responses} responses, {settings.num_inner_steps} updates each"


def kept(result: Mapping[str, Any], curves: Sequence[str]) -> dict[str, Any]:
    """Return the result with these curves alone: what a figure needs."""
    arms = {}
    for arm, found in result["arms"].items():
        seeds = {
            seed: {**outcome, "curves": {name: outcome["curves"][name] for name in curves if name in outcome["curves"]}}
            for seed, outcome in found["seeds"].items()
        }
        arms[arm] = {**found, "seeds": seeds}
    return {**result, "arms": arms}


# From results to numbers


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, one pair per seed, and its standard error."""

    mean: float
    standard_error: float


def paired_difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Difference:
    """Return the mean of ours - theirs over the seeds that both have, with its standard error.

    The runs of a pair begin alike and see the same problems, so that what the two have in common drops out.
    raises   ValueError   fewer than two seeds in common: then there is no standard error
    """
    seeds = sorted(set(ours) & set(theirs))
    if len(seeds) < 2:
        raise ValueError(f"A standard error needs two seeds, but both runs have only {seeds}.")
    differences = [ours[seed] - theirs[seed] for seed in seeds]
    return Difference(statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(seeds)))


def solved(arm: Mapping[str, Any]) -> dict[str, float]:
    """Return by seed the share of all held-out problems solved at the end."""
    return {seed: statistics.mean(outcome["held_out"].values()) for seed, outcome in arm["seeds"].items()}


def at_the_end(arm: Mapping[str, Any], curve: str, steps: int = 10) -> dict[str, float]:
    """Return by seed the mean of a curve over the last steps."""
    found = {}
    for seed, outcome in arm["seeds"].items():
        values = [value for value in outcome["curves"][curve][-steps:] if value is not None]
        found[seed] = statistics.mean(values) if values else math.nan
    return found


def table_of(result: Mapping[str, Any], curves: Sequence[str]) -> str:
    """Return the study as a Markdown table: means over seeds, and each arm's difference from the first one."""
    names = list(result["arms"])
    first = result["arms"][names[0]]
    measures: list[tuple[str, Callable[[Mapping[str, Any]], dict[str, float]]]] = [("solved", solved)]
    measures += [(curve, lambda arm, curve=curve: at_the_end(arm, curve)) for curve in curves]  # type: ignore[misc]
    headings = [f"`{name}`" if name != "solved" else name for name, _ in measures]
    lines = [
        "| | " + " | ".join(part for heading in headings for part in (heading, "difference")) + " |",
        "|---|" + "---:|" * (2 * len(measures)),
    ]
    for name in names:
        cells = []
        for _, measure in measures:
            here = measure(result["arms"][name])
            cells.append(f"{statistics.mean(here.values()):.3f}")
            cells.append("" if name == names[0] else _in_words(paired_difference(here, measure(first))))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _in_words(difference: Difference) -> str:
    return f"{difference.mean:+z.3f} ± {difference.standard_error:.3f}".replace("-", "\N{MINUS SIGN}")


# The four runs gone wrong

RUN = "gone wrong"
WRONG: Mapping[str, Study] = {
    "collapse": Study(
        "Nothing is left to choose from",
        {RUN: {"advantage": "best", "learning_rate": 3e-4, **EIGHT_UPDATES}},
        ("entropy", "groups_without_signal", "accuracy"),
    ),
    "length": Study(
        "Responses shrink, and the working with them",
        {RUN: {"max_new_tokens": 20, "truncated": "penalty", "overlong_buffer": 16}},
        ("response_length", "entropy", "accuracy"),
    ),
    "hacking": Study(
        "The reward rises, and what it should stand for does not",
        {RUN: FASTER},
        ("reward", "accuracy", "response_length"),
        {RUN: "answer_occurs"},
    ),
    "staleness": Study(
        "The sampler is too old",
        {RUN: {**FASTER, "sampler_lag": 16}},
        ("sampler_gap", "reward", "accuracy"),
    ),
}


# The command


def read_results(path: Path) -> dict[str, Any]:
    """Return what was run before; empty where nothing was."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"studies": {}, "wrong": {}}


def write_results(results: Mapping[str, Any], path: Path) -> None:
    """Write the results, one line per run, so that a change shows where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(results) + "\n", encoding="utf-8")


def _lines(value: Any, depth: int = 0) -> str:
    if not isinstance(value, Mapping) or "curves" in value:
        return json.dumps(value, separators=(",", ":"))
    inner = ",\n".join(f"{' ' * (depth + 1)}{json.dumps(key)}: {_lines(one, depth + 1)}" for key, one in value.items())
    return "{\n" + inner + "\n" + " " * depth + "}"


def run_and_keep(chosen: Mapping[str, Study], part: str, seeds: Sequence[int], base: Settings, path: Path) -> None:
    """Run the studies one after another; each is kept as soon as it is there."""
    done: dict[str, Any] = {}
    for name, study in chosen.items():
        print(f"{name}: {study.question}", flush=True)
        result = kept(run_study(study, seeds, base, done), study.curves)
        results = read_results(path)
        results[part][name] = result
        write_results(results, path)


def show(results: Mapping[str, Any], folder: Path) -> None:
    """Draw every figure into the folder, and print every table."""
    for name, result in results["studies"].items():
        save_study(result, STUDIES[name].curves, folder / f"study_{name}.png")
        seeds = len(next(iter(result["arms"].values()))["seeds"])
        print(f"\n{name}: {result['question']} {result['budget']}, {seeds} seeds\n")
        print(table_of(result, STUDIES[name].curves))
    if results["wrong"]:
        curves = {name: WRONG[name].curves for name in results["wrong"]}
        save_wrong(results["wrong"], curves, folder / "gone_wrong.png")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="What the options of GRPO do, on a task of seconds.")
    parser.add_argument("--study", nargs="*", choices=list(STUDIES), metavar="NAME", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--wrong", action="store_true", help="the runs gone wrong")
    parser.add_argument("--show", action="store_true", help="draw and print what study.json holds")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--steps", type=int, default=Settings.num_steps)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of study.json and the figures")
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # the tensors are small: more threads only wait for each other
    base, path = Settings(num_steps=arguments.steps), arguments.out / RESULTS.name
    if arguments.study is not None:
        chosen = {name: STUDIES[name] for name in arguments.study or STUDIES}
        run_and_keep(chosen, "studies", arguments.seeds, base, path)
    if arguments.wrong:
        run_and_keep(WRONG, "wrong", arguments.seeds[:1], base, path)
    if arguments.study is not None or arguments.wrong or arguments.show:
        show(read_results(path), arguments.out)
        return
    print("held-out problems solved, before and after:")
    print(f"  {held_out_accuracy(CausalLM.from_pretrained(CHECKPOINT))}")
    print(f"  {outcome_of(replace(base, seed=arguments.seeds[0])).held_out}")


if __name__ == "__main__":
    main()

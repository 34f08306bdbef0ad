"""The pictures of the theory lab, with your functions. There is nothing to complete in this file.

python experiments.py                      every picture whose functions are complete, into the folder `pictures`
python experiments.py --out some/folder
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import policy_gradient_theory as lab_functions
import torch
from lab import Curve, Panel, save_picture
from torch import Tensor

# The policies and rewards of the text

STATE = torch.tensor([11.0, 9.0], dtype=torch.float64)
OFTEN = torch.tensor([0.9, 0.1], dtype=torch.float64)
POLICY = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
REFERENCE = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
EARNED = torch.tensor([8.0, 3.0, 1.0], dtype=torch.float64)
OUTCOMES = torch.tensor([1.0, -0.5, -1.0], dtype=torch.float64)
EPSILON = 0.2


def variance_against_baseline() -> list[Panel]:
    """The variance as a parabola in the baseline, for the first logit of two actions and for all logits of three."""
    first = lab_functions.score_table(OFTEN)[:, :1]  # action param
    return [
        _parabola("two actions, rewards 11 and 9", OFTEN, first, STATE, (-1.0, 13.0)),
        _parabola("three actions, rewards 8, 3 and 1", POLICY, lab_functions.score_table(POLICY), EARNED, (-1.0, 8.0)),
    ]


def your_example() -> list[Panel]:
    """Your own policy and rewards, for which the mean reward is a bad baseline."""
    probs, rewards = (part.double() for part in lab_functions.mean_baseline_backfires())
    mean = float(probs @ rewards)
    span = tuple(sorted((-0.3 * mean, 1.3 * mean)))
    scores = lab_functions.score_table(probs)
    return [_parabola("where the mean reward backfires", probs, scores, rewards, (span[0], span[1]))]


def _parabola(title: str, probs: Tensor, scores: Tensor, rewards: Tensor, span: tuple[float, float]) -> Panel:
    def variance(baseline: float) -> float:
        return float(lab_functions.estimator_moments(probs, scores, rewards, baseline)[1])

    baselines = torch.linspace(*span, 141).tolist()
    best, mean = float(lab_functions.optimal_baseline(probs, scores, rewards)), float(probs @ rewards)
    named = {"no baseline": 0.0, f"E[R] = {mean:.4g}": mean, f"b* = {best:.4g}": best}
    points = [Curve(name, [baseline], [variance(baseline)]) for name, baseline in named.items()]
    curve = Curve("variance", baselines, [variance(baseline) for baseline in baselines])
    return Panel(title, [curve], points, {"xlabel": "baseline", "ylabel": "variance of the estimate"})


def kl_estimators() -> list[Panel]:
    """Mean and spread of the three estimates while the reference moves away from the policy."""
    towards = REFERENCE.log() - POLICY.log()
    steps = torch.linspace(0.0, 2.5, 51, dtype=torch.float64)
    references = [torch.softmax(POLICY.log() + step * towards, dim=0) for step in steps]
    moments = [lab_functions.kl_moments(POLICY, reference) for reference in references]
    means = torch.stack([mean for mean, _ in moments], dim=1)  # estimator step
    spreads = torch.stack([variance for _, variance in moments], dim=1).sqrt()
    x = steps.tolist()
    curves = [Curve(f"k{k + 1}", x, means[k].tolist()) for k in range(3)]
    spread_curves = [Curve(f"k{k + 1}", x, spreads[k].tolist()) for k in range(3)]
    label = {"xlabel": "reference: 0 is the policy itself, 1 is [0.6, 0.3, 0.1]"}
    return [
        Panel("mean: k1 and k3 are the divergence", curves, [], {**label, "ylabel": "mean"}),
        Panel("spread of one sample", spread_curves, [], {**label, "ylabel": "standard deviation"}),
    ]


def group_size() -> list[Panel]:
    """What a larger group buys: a more certain mean, and less of the bias of its own baseline."""
    thirds, sizes = torch.full((3,), 1 / 3, dtype=torch.float64), torch.tensor([2, 4, 8, 16, 32])
    every = torch.arange(1, 41)
    theory = lab_functions.group_mean_standard_error(thirds, OUTCOMES, every)
    draws = torch.Generator().manual_seed(0)
    groups = [OUTCOMES[torch.randint(3, (4000, int(size)), generator=draws)] for size in sizes]
    seen = Curve("of 4000 groups each", sizes.tolist(), [float(group.mean(dim=1).std()) for group in groups])
    few = torch.tensor([0.7, 0.3], dtype=torch.float64)
    counts = list(range(2, 11))
    shares = {name: [_share(few, size, name) for size in counts] for name in ("leave_one_out", "group_mean")}
    error = {"xlabel": "samples in a group", "ylabel": "standard error of the mean", "ylim": (0.0, 0.9)}
    share = {"xlabel": "samples in a group", "ylabel": "share of the true gradient", "ylim": (0.0, 1.1)}
    exact = Curve("exact", every.tolist(), theory.tolist())
    return [
        Panel("four times the samples, half the error", [exact], [seen], error),
        Panel("its own mean shrinks the gradient", [Curve(name, counts, y) for name, y in shares.items()], [], share),
    ]


def _share(probs: Tensor, size: int, baseline: str) -> float:
    """Which multiple of the true gradient a group's estimate is on average."""
    rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    true = lab_functions.expected_group_gradient(probs, rewards, 1, "none")
    found = lab_functions.expected_group_gradient(probs, rewards, size, baseline)
    return float(found @ true / (true @ true))


def clip() -> list[Panel]:
    """The clipped objective and its slope, for an advantage of either sign."""
    ratios = torch.linspace(0.3, 2.0, 341, dtype=torch.float64)
    return [_clipped(ratios, 1.0, "advantage 1"), _clipped(ratios, -1.0, "advantage \N{MINUS SIGN}1")]


def _clipped(ratios: Tensor, advantage: float, title: str) -> Panel:
    objective, slope = lab_functions.clipped_objective(ratios, torch.full_like(ratios, advantage), EPSILON)
    named = {"objective": objective, "slope in the log-probability": slope}
    curves = [Curve(name, ratios.tolist(), line.tolist()) for name, line in named.items()]
    return Panel(f"{title}, epsilon {EPSILON}", curves, [], {"xlabel": "ratio", "ylabel": "of one token"})


def newer_methods() -> list[Panel]:
    """How the noise of three ratios depends on the length, and what a place in the batch is filled with changes."""
    lengths = list(range(1, 9))
    variances = [lab_functions.ratio_moments(REFERENCE, POLICY, length)[1] for length in lengths]
    ratios = {name: [float(v[row]) for v in variances] for row, name in enumerate(("token", "response", "GSPO"))}
    chances = torch.linspace(0.02, 0.98, 97, dtype=torch.float64)
    same, one = lab_functions.dynamic_sampling_weights(chances, 8)
    factors = {"the same prompt": same.tolist(), "any prompt": [float(one)] * len(chances)}
    of_ratios = {"xlabel": "tokens in a response", "ylabel": "variance of the ratio", "yscale": "log"}
    of_factors = {"xlabel": "probability of success", "ylabel": "factor, groups of 8", "ylim": (0.0, 7.0)}
    return [
        Panel("a root quiets the product", [Curve(n, lengths, y) for n, y in ratios.items()], [], of_ratios),
        Panel("what fills an empty place", [Curve(n, chances.tolist(), y) for n, y in factors.items()], [], of_factors),
    ]


PICTURES: dict[str, Callable[[], list[Panel]]] = {
    "variance_against_baseline": variance_against_baseline,
    "your_example": your_example,
    "kl_estimators": kl_estimators,
    "group_size": group_size,
    "clip": clip,
    "newer_methods": newer_methods,
}


def main() -> None:
    """Draw what the functions that are complete allow."""
    parser = argparse.ArgumentParser(description="The pictures of the theory lab.")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="folder to write to (default: pictures)")
    arguments = parser.parse_args()
    for name, panels in PICTURES.items():
        try:
            save_picture(panels(), arguments.out / f"{name}.png")
        except NotImplementedError as missing:
            print(f"{name}: {missing} is not complete yet")
        else:
            print(f"{name}: {arguments.out / f'{name}.png'}")


if __name__ == "__main__":
    main()

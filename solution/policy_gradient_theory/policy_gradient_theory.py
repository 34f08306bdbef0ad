"""Policy gradients, worked out: complete the twenty functions below, in any order.

README.md beside this file derives the formulas and says how many points each item is worth. Axis names, used
in every shape: `action` counts what a policy can do, and is called `logit` or `vocab` where it indexes logits;
`param` counts parameters, `batch` and `pos` samples and their tokens, `prompt` and `trial` groups and their
responses.

Rules that hold for all functions:

- no argument is modified: compute something new instead of writing into what was passed in;
- floating dtype is kept: float32 in, float32 out, and the same with float64;
- sizes can all differ: say which axis you mean.

Expectations here are exact: a policy with a handful of actions can be summed over. Nothing is sampled.

Check your work at any time, in this folder:

    python -m autograder check                    every item, with points
    python -m autograder check --item NAME        one item, by the name that the first command shows
    pytest                                        the same checks as tests
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

# Estimators


def score_table(probs: Tensor) -> Tensor:
    """Return the gradient of every action's log-probability with respect to the logits.

        table[a, j] = d log softmax(logits)[a] / d logits[j]

    probs     float[action]         softmax(logits): positive, sums to 1
    returns   float[action logit]   row a belongs to action a; same dtype as probs
    """
    ### BEGIN SOLUTION
    return torch.eye(len(probs)).to(probs) - probs
    ### END SOLUTION


def reinforce_gradient(logits: Tensor, token: int, reward: float) -> Tensor:
    """Return the gradient of the REINFORCE loss of one sampled token with respect to the logits.

        loss = -reward * log softmax(logits)[token]

    logits    float[vocab]   any size, also in the hundreds
    token     int            the token that was sampled
    reward    float          what it earned, of either sign
    returns   float[vocab]   same dtype as logits; following it downhill makes a token that earned more likely
    """
    ### BEGIN SOLUTION
    grad_log_prob = -torch.softmax(logits, dim=-1)
    grad_log_prob[token] += 1
    return -reward * grad_log_prob
    ### END SOLUTION


def estimator_moments(probs: Tensor, scores: Tensor, rewards: Tensor, baseline: float) -> tuple[Tensor, Tensor]:
    """Return mean and variance of a policy gradient estimate from one sampled action.

        estimate(a) = (rewards[a] - baseline) * scores[a]            with probability probs[a]
        variance    = E[ |estimate - mean|^2 ]                       summed over parameters

    probs      float[action]         positive, sums to 1
    scores     float[action param]   the gradient of each action's log-probability; need not be a softmax's
    rewards    float[action]
    baseline   float
    returns    (mean float[param], variance float[]), exact, same dtype as probs
    """
    ### BEGIN SOLUTION
    estimates = (rewards - baseline)[:, None] * scores                                  # action param
    mean = probs @ estimates                                                            # param
    variance = probs @ (estimates - mean).square().sum(dim=1)
    return mean, variance
    ### END SOLUTION


def optimal_baseline(probs: Tensor, scores: Tensor, rewards: Tensor) -> Tensor:
    """Return the baseline for which the estimate of `estimator_moments` has the least variance.

    probs     float[action]         positive, sums to 1
    scores    float[action param]   the gradient of each action's log-probability: their expectation is 0
    rewards   float[action]
    returns   float[]               same dtype as probs
    """
    ### BEGIN SOLUTION
    weights = probs * scores.square().sum(dim=1)                                        # action
    return weights @ rewards / weights.sum()
    ### END SOLUTION


def mean_baseline_backfires() -> tuple[Tensor, Tensor]:
    """Return a policy and rewards for which the baseline E[R] gives a larger variance than no baseline.

    The policy is a softmax over its actions and the parameters are its logits, so the scores are those of
    `score_table`. There are many answers, and any of them is right.

    returns   (probs float[action], rewards float[action]): two actions or more, every probability above 0, and
              their sum 1
    """
    ### BEGIN SOLUTION
    return torch.tensor([0.1, 0.9]), torch.tensor([0.0, 2.0])
    ### END SOLUTION


def expected_group_gradient(probs: Tensor, rewards: Tensor, group_size: int, baseline: str) -> Tensor:
    """Return what a group's gradient estimate is on average, over all groups that the policy could sample.

    A group is group_size independent draws from probs. With r their rewards and s their scores (the gradients of
    their log-probabilities with respect to the logits), the estimate of one group is

        1/G * sum over i of  (r[i] - b[i]) * s[i]

        none            b[i] = 0
        group_mean      b[i] = mean of all rewards of the group
        leave_one_out   b[i] = mean of the rewards of the other G - 1

    probs        float[action]   softmax(logits): positive, sums to 1
    rewards      float[action]   what each action earns
    group_size   int             G, small enough to go through every group
    baseline     one of the three names above
    returns      float[action]   exact, same dtype as probs
    raises       ValueError      unknown baseline (name it in the message); leave_one_out with a group of one
    """
    ### BEGIN SOLUTION
    if baseline not in ("none", "group_mean", "leave_one_out"):
        raise ValueError(f"Unknown baseline: {baseline!r}")
    if baseline == "leave_one_out" and group_size < 2:
        raise ValueError(f"{baseline} needs at least two draws")
    scores = torch.eye(len(probs)).to(probs) - probs                                    # action logit
    expected = torch.zeros_like(probs)
    for group in itertools.product(range(len(probs)), repeat=group_size):
        drawn = rewards[list(group)]                                                    # trial
        if baseline == "group_mean":
            drawn = drawn - drawn.mean()
        elif baseline == "leave_one_out":
            drawn = drawn - (drawn.sum() - drawn) / (group_size - 1)
        expected += probs[list(group)].prod() * (drawn @ scores[list(group)]) / group_size
    return expected
    ### END SOLUTION


def kl_estimates(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Return three estimates of KL(policy || reference) from each sample of the policy.

    With x = ref_log_prob - log_prob of a sample:

        k1 = -x            k2 = x^2 / 2            k3 = e^x - 1 - x

    log_probs       float[...]     what the policy gives to samples of its own; any shape
    ref_log_probs   float[...]     what the reference gives to them
    returns         float[3 ...]   k1, k2, k3 along a new first axis; same dtype
    """
    ### BEGIN SOLUTION
    x = ref_log_probs - log_probs
    return torch.stack([-x, x.square() / 2, torch.exp(x) - 1 - x])
    ### END SOLUTION


def kl_moments(probs: Tensor, ref_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of k1, k2 and k3 over samples of the policy.

    probs       float[action]   the policy, which samples
    ref_probs   float[action]   the reference
    returns     (mean float[estimator], variance float[estimator]), exact, in the order k1, k2, k3; same dtype
    """
    ### BEGIN SOLUTION
    x = ref_probs.log() - probs.log()                                                   # action
    estimates = torch.stack([-x, x.square() / 2, torch.exp(x) - 1 - x])                 # estimator action
    mean = estimates @ probs
    variance = (estimates - mean[:, None]).square() @ probs
    return mean, variance
    ### END SOLUTION


def kl_expected_gradients(logits: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Return the gradient that k1, k2 and k3 give on average when they are used as a loss.

    That is how training uses them: sample an action, hold it fixed, and differentiate the estimate at that
    action. The action is drawn from softmax(logits); the average is over actions, after differentiating.

    logits          float[vocab]
    ref_log_probs   float[vocab]             log-probabilities of the reference, constants
    returns         float[estimator vocab]   with respect to the logits, in the order k1, k2, k3; same dtype
    """
    ### BEGIN SOLUTION
    log_probs = torch.log_softmax(logits, dim=-1)                                       # vocab
    probs, x = log_probs.exp(), ref_log_probs - log_probs
    slopes = torch.stack([torch.ones_like(x), -x, 1 - torch.exp(x)])                    # d estimate / d log_prob
    weighted = slopes * probs                                                           # estimator vocab
    return weighted - weighted.sum(dim=1, keepdim=True) * probs
    ### END SOLUTION


def group_mean_standard_error(probs: Tensor, rewards: Tensor, group_sizes: Tensor) -> Tensor:
    """Return how far the mean reward of a group typically is from the expected reward.

    That is the standard deviation of the mean of G independent rewards, for each G.

    probs         float[outcome]   how likely each reward is; sums to 1
    rewards       float[outcome]
    group_sizes   int[size]        each at least 1
    returns       float[size]      exact, same dtype as probs
    """
    ### BEGIN SOLUTION
    mean = probs @ rewards
    variance = probs @ (rewards - mean).square()
    return torch.sqrt(variance / group_sizes)
    ### END SOLUTION


# Objectives and rewards

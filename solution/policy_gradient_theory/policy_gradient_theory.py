"""Policy gradients, worked out: complete the twenty functions below, in any order.

README.md beside this file derives the formulas and says how many points each item is worth. The first ten
functions are about estimators, the others about objectives and rewards. Axis names, used in every shape:
`action` counts what a policy can do, and is called `logit` or `vocab` where it indexes logits; `param` counts
parameters, `batch` and `pos` samples and their tokens, `prompt` and `trial` groups and their responses.

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
from collections import Counter

import torch
from lab import sort_inclusion_ordering_reward
from torch import Tensor

EPS = 1e-5  # added to a standard deviation


def score_table(probs: Tensor) -> Tensor:
    """Return the gradient of every action's log-probability with respect to the logits.

        table[a, j] = d log softmax(logits)[a] / d logits[j]

    probs     float[action]         softmax(logits): positive, sums to 1
    returns   float[action logit]   row a belongs to action a; same dtype as probs
    """
    ### BEGIN SOLUTION
    return torch.eye(len(probs)) - probs
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
    estimates = (rewards - baseline)[:, None] * scores  # action param
    mean = probs @ estimates  # param
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
    weights = probs * scores.square().sum(dim=1)  # action
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
    scores = torch.eye(len(probs)) - probs  # action logit
    expected = torch.zeros_like(probs)
    for group in itertools.product(range(len(probs)), repeat=group_size):
        drawn = rewards[list(group)]  # trial
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
    x = ref_probs.log() - probs.log()  # action
    estimates = torch.stack([-x, x.square() / 2, torch.exp(x) - 1 - x])  # estimator action
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
    log_probs = torch.log_softmax(logits, dim=-1)  # vocab
    probs, x = log_probs.exp(), ref_log_probs - log_probs
    slopes = torch.stack([torch.ones_like(x), -x, 1 - torch.exp(x)])  # d estimate / d log_prob
    weighted = slopes * probs  # estimator vocab
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


def importance_weights(log_probs: Tensor, old_log_probs: Tensor, level: str) -> Tensor:
    """Return how much more likely a policy makes what another one sampled.

        token      w[b, t] = p(token t) / p_old(token t)
        sequence   w[b]    = p(response b) / p_old(response b), of all the response's tokens together

    log_probs       float[batch pos]   log-probability of every sampled token under the policy
    old_log_probs   float[batch pos]   the same under the policy that sampled
    level           "token" or "sequence"
    returns         float[batch pos] for tokens, float[batch] for sequences; same dtype as log_probs
    raises          ValueError         unknown level (name it in the message)

    A response of 400 tokens has a probability that no float can hold, and a weight that any can.
    """
    ### BEGIN SOLUTION
    if level not in ("token", "sequence"):
        raise ValueError(f"Unknown level: {level!r}")
    log_ratios = log_probs - old_log_probs  # batch pos
    return torch.exp(log_ratios if level == "token" else log_ratios.sum(dim=-1))
    ### END SOLUTION


def clipped_objective(ratios: Tensor, advantages: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the clipped objective of every token, and its slope.

        objective = min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)          A the token's advantage
        slope     = d objective / d log_prob                                           where ratio = exp(log_prob - c)

    The slope is what an update feels: it is 0 where the minimum no longer depends on the log-probability. At a
    ratio of exactly 1 - epsilon or 1 + epsilon it is not 0 yet: there it is ratio * A, as inside the interval.

    ratios       float[token]            positive
    advantages   float[token]            of both signs, never 0
    epsilon      above 0
    returns      (objective, slope), a tuple: float[token] each, same dtype as ratios
    """
    ### BEGIN SOLUTION
    clipped = ratios.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratios * advantages, clipped * advantages)
    stopped = torch.where(advantages > 0, ratios > 1 + epsilon, ratios < 1 - epsilon)
    return objective, (ratios * advantages).masked_fill(stopped, 0.0)
    ### END SOLUTION


def length_weights(lengths: Tensor, normalization: str, max_length: int | None = None) -> Tensor:
    """Return the factor that every token of a response has in the loss of its batch.

        token_mean        the loss is a sum over all tokens / number of all tokens
        sequence_mean     the loss is a mean over responses of (sum over its tokens / number of its tokens)
        constant_length   the loss is a sum over all tokens / (number of responses * max_length)

    lengths         float[batch]    number of tokens of each response: whole numbers, at least 1
    normalization   one of the three names above
    max_length      needed, and used, for constant_length alone
    returns         float[batch]    one factor per response, which all its tokens share; same dtype as lengths
    raises          ValueError      unknown normalization (name it in the message); constant_length without
                                    max_length
    """
    ### BEGIN SOLUTION
    if normalization not in ("token_mean", "sequence_mean", "constant_length"):
        raise ValueError(f"Unknown normalization: {normalization!r}")
    if normalization == "constant_length" and max_length is None:
        raise ValueError("constant_length needs max_length")
    if normalization == "token_mean":
        return torch.ones_like(lengths) / lengths.sum()
    if normalization == "sequence_mean":
        return 1 / (len(lengths) * lengths)
    return torch.ones_like(lengths) / (len(lengths) * max_length)
    ### END SOLUTION


def group_advantages(rewards: Tensor, mode: str) -> Tensor:
    """Return the advantage of each response: its reward, compared with those of its group.

    With mean and std taken over the responses to one prompt (the trial axis):

        mean                  r - mean(r)
        mean_std              (r - mean(r)) / (std(r) + EPS)     the sample's std: divides by trials - 1
        mean_population_std   (r - mean(r)) / (std(r) + EPS)     the population's std: divides by trials

    rewards   float[prompt trial]   at least two responses to a prompt
    mode      one of the three names above
    returns   float[prompt trial]   same dtype as rewards
    raises    ValueError            unknown mode (name it in the message)
    """
    ### BEGIN SOLUTION
    if mode not in ("mean", "mean_std", "mean_population_std"):
        raise ValueError(f"Unknown mode: {mode!r}")
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    if mode == "mean":
        return centered
    std = rewards.std(dim=-1, keepdim=True, correction=1 if mode == "mean_std" else 0)
    return centered / (std + EPS)
    ### END SOLUTION


def has_signal(rewards: Tensor) -> Tensor:
    """Return which groups can teach anything: those whose rewards are not all equal.

    Equal means equal, to the last bit: ten rewards of 1.1 are no signal, though the mean of ten float32 numbers
    of 1.1 is another number; 0.5 and 0.5000001 are one.

    rewards   float[prompt trial]   float32 or float64
    returns   bool[prompt]          True where at least two rewards of the group differ
    """
    ### BEGIN SOLUTION
    return (rewards != rewards[:, :1]).any(dim=-1)
    ### END SOLUTION


def no_signal_probability(success_probs: Tensor, group_size: int) -> Tensor:
    """Return how likely a group is to teach nothing, where a response earns 1 or 0.

    success_probs   float[prompt]   probability that one response to that prompt earns 1; responses are independent
    group_size      responses to each prompt
    returns         float[prompt]   probability that all responses of the group earn the same; same dtype as
                                    success_probs
    """
    ### BEGIN SOLUTION
    return success_probs**group_size + (1 - success_probs) ** group_size
    ### END SOLUTION


def find_loopholes(prompt: list[int], vocab_size: int) -> list[list[int]]:
    """Return every response that earns the most a sorting reward gives, and is not the sorted prompt.

    The reward is `sort_inclusion_ordering_reward` of lab.py. The sorted prompt always earns the most there is:
    2n - 1 for n tokens. Which other responses do?

    prompt       n ints from 0 to vocab_size - 1; repetitions are where it gets interesting
    vocab_size   tokens that a response may be made of: 0 to vocab_size - 1
    returns      list of responses, each a list of n ints; every loophole once, in any order; an empty list where
                 there is none

    Prompts are short: all vocab_size**n responses can be tried.
    """
    ### BEGIN SOLUTION
    right = sorted(prompt)
    most = sort_inclusion_ordering_reward(prompt, right)
    responses = [list(tokens) for tokens in itertools.product(range(vocab_size), repeat=len(prompt))]
    return [r for r in responses if r != right and sort_inclusion_ordering_reward(prompt, r) == most]
    ### END SOLUTION


def repaired_reward(prompt: list[int], response: list[int]) -> float:
    """Return a sorting reward without the loophole: only the sorted prompt earns 2n - 1.

        inclusion   tokens that prompt and response have in common, each as often as both have it
        ordering    adjacent pairs of the response that do not descend, one point each
        reward      inclusion + ordering

    If the prompt holds two 1s, a response with one 1 earns one point for it, with two or three of them two.

    prompt     list of n ints
    response   list of n ints
    returns    a float, 0 to 2n - 1
    """
    ### BEGIN SOLUTION
    common = Counter(prompt) & Counter(response)
    ascending = sum(left <= right for left, right in itertools.pairwise(response))
    return float(common.total() + ascending)
    ### END SOLUTION


def training_memory(parameters: float, method: str) -> float:
    """Return how much memory the models of a training run need, in gigabytes of 10**9 bytes.

        per parameter of a model that is trained   2 bytes of weight (bf16), 2 of gradient (bf16), and two moments
                                                   of Adam (fp32) of 4 bytes each
        per parameter of a frozen model            2 bytes of weight

        ppo    trains a policy and a critic; reference model and reward model are frozen
        grpo   trains a policy; reference model and reward model are frozen

    All models have the same size. Activations are left out; so is the policy that sampled, of which only
    log-probabilities are kept.

    parameters   of each model
    method       "ppo" or "grpo"
    returns      a float
    raises       ValueError   unknown method (name it in the message)
    """
    ### BEGIN SOLUTION
    if method not in ("ppo", "grpo"):
        raise ValueError(f"Unknown method: {method!r}")
    trained, frozen = (2, 2) if method == "ppo" else (1, 2)
    return parameters * (trained * (2 + 2 + 2 * 4) + frozen * 2) / 10**9
    ### END SOLUTION


def repaired_grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    rewards: Tensor,
    epsilon: float,
    kl_coefficient: float,
) -> Tensor:
    """Return what `broken_grpo_loss` of broken_grpo.py was meant to be: find its seven faults, and repair them.

        A       (r - mean(r)) / (std(r) + EPS), over the group, the sample's std; a response's tokens share it
        ratio   exp(log_prob - old_log_prob)
        kl      exp(x) - x - 1                                                         x = ref_log_prob - log_prob
        loss    -mean of min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)   +   kl_coefficient * mean of kl

    Both means are over all tokens of all responses.

    log_probs        float[prompt trial pos]   of the policy being trained; the loss is differentiable in it
    old_log_probs    float[prompt trial pos]   of the policy that sampled
    ref_log_probs    float[prompt trial pos]   of the reference model
    rewards          float[prompt trial]
    returns          float[]                   a scalar tensor, dtype of log_probs

    old_log_probs and ref_log_probs are constants, whatever graph they carry. Write the advantages out here, so that
    a mistake in another function costs nothing in this one.
    """
    ### BEGIN SOLUTION
    centered = rewards - rewards.mean(dim=-1, keepdim=True)  # prompt trial
    advantages = (centered / (rewards.std(dim=-1, keepdim=True) + EPS)).unsqueeze(-1)  # prompt trial 1
    ratios = torch.exp(log_probs - old_log_probs.detach())  # prompt trial pos
    clipped = ratios.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratios * advantages, clipped * advantages)
    log_ratios = ref_log_probs.detach() - log_probs
    kl = torch.exp(log_ratios) - log_ratios - 1
    return kl_coefficient * kl.mean() - objective.mean()
    ### END SOLUTION

"""Policy gradients, worked out: complete the twenty-four functions below, in any order.

Axes: `action` counts what a policy can do, and is `logit` or `vocab` where it indexes logits; `param` parameters,
`batch` and `pos` samples and their tokens, `prompt` and `trial` groups and their responses, two or more.

House rules, for all functions: names, order and defaults of arguments as given; no argument changed; float32 in,
float32 out, and the same with float64; axes of any size, 1 too, in any memory layout; a call depends on its arguments
alone, and what it returned stays as it was. Results are exact: nothing is sampled, and rounding is forgiven. Policies
are positive, down to 1e-13, and sum to 1. A float[] is a tensor without axes, or a Python number. Names such as
"group_mean" are exact: any other is unknown, and the message of its ValueError holds it as given.
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

    probs     float[action]         softmax(logits)
    returns   float[action logit]
    """
    raise NotImplementedError("score_table")


def reinforce_gradient(logits: Tensor, token: int, reward: float) -> Tensor:
    """Return the gradient of the REINFORCE loss of one sampled token with respect to the logits.

        loss = -reward * log softmax(logits)[token]

    logits    float[vocab]   also in the hundreds and far apart
    returns   float[vocab]
    """
    raise NotImplementedError("reinforce_gradient")


def estimator_moments(probs: Tensor, scores: Tensor, rewards: Tensor, baseline: float) -> tuple[Tensor, Tensor]:
    """Return mean and variance of a policy gradient estimate from one sampled action.

        estimate(a) = (rewards[a] - baseline) * scores[a]            with probability probs[a]
        variance    = E[ |estimate - mean|^2 ]                       summed over parameters

    probs      float[action]
    scores     float[action param]   the gradient of each action's log-probability: their expectation is 0
    rewards    float[action]
    returns    (mean float[param], variance float[]), a tuple
    """
    raise NotImplementedError("estimator_moments")


def optimal_baseline(probs: Tensor, scores: Tensor, rewards: Tensor) -> Tensor:
    """Return the baseline for which the estimate of `estimator_moments` has the least variance.

    probs     float[action]
    scores    float[action param]   can all be small, as a millionth is, but not all 0
    rewards   float[action]
    returns   float[]
    """
    raise NotImplementedError("optimal_baseline")


def mean_baseline_backfires() -> tuple[Tensor, Tensor]:
    """Return a policy and rewards for which the baseline E[R] gives a larger variance than no baseline.

    The policy is a softmax over its actions, and the parameters are its logits. Larger means larger by one percent or
    more.

    returns   (probs float[action], rewards float[action]), a tuple of two tensors, float32 or float64: 2 to 1000
              actions
    """
    raise NotImplementedError("mean_baseline_backfires")


def expected_group_gradient(probs: Tensor, rewards: Tensor, group_size: int, baseline: str) -> Tensor:
    """Return what a group's gradient estimate is on average, over all groups that the policy could sample.

    A group is group_size independent draws from probs. With r their rewards and s their scores (rows of
    `score_table`), the estimate of one group is

        1/G * sum over i of  (r[i] - b[i]) * s[i]

        none            b[i] = 0
        group_mean      b[i] = mean of all rewards of the group
        leave_one_out   b[i] = mean of the rewards of the other G - 1

    probs        float[action]   softmax(logits)
    rewards      float[action]
    group_size   int             G, at least 1, and small enough to go through every group
    returns      float[action]
    raises       ValueError      unknown baseline; leave_one_out with a group of one
    """
    raise NotImplementedError("expected_group_gradient")


def kl_estimates(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Return three estimates of KL(policy || reference) from each sample of the policy.

    With x = ref_log_prob - log_prob of a sample:

        k1 = -x            k2 = x^2 / 2            k3 = e^x - 1 - x

    log_probs       float[...]     any shape
    ref_log_probs   float[...]     near or far
    returns         float[3 ...]   k1, k2, k3 along a new first axis
    """
    raise NotImplementedError("kl_estimates")


def kl_moments(probs: Tensor, ref_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of k1, k2 and k3 over samples of the policy.

    probs       float[action]   the policy, which samples
    ref_probs   float[action]   the reference
    returns     (mean float[estimator], variance float[estimator]), a tuple, in the order k1, k2, k3
    """
    raise NotImplementedError("kl_moments")


def kl_expected_gradients(logits: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Return the gradient that k1, k2 and k3 give on average when they are used as a loss.

    Sample an action from softmax(logits), hold it fixed, and differentiate the estimate at that action. The average is
    over actions, after differentiating.

    logits          float[vocab]             no log-probabilities yet
    ref_log_probs   float[vocab]             constants
    returns         float[estimator vocab]   with respect to the logits, in the order k1, k2, k3
    """
    raise NotImplementedError("kl_expected_gradients")


def group_mean_standard_error(probs: Tensor, rewards: Tensor, group_sizes: Tensor) -> Tensor:
    """Return how far the mean reward of a group typically is from the expected reward.

    That is the standard deviation of the mean of G independent rewards, for each G.

    probs         float[outcome]   can be 0
    rewards       float[outcome]
    group_sizes   int[size]
    returns       float[size]
    """
    raise NotImplementedError("group_mean_standard_error")


def importance_weights(log_probs: Tensor, old_log_probs: Tensor, level: str) -> Tensor:
    """Return how much more likely a policy makes what another one sampled.

        token      w[b, t] = p(token t) / p_old(token t)
        sequence   w[b]    = p(response b) / p_old(response b), of all the response's tokens together

    log_probs       float[batch pos]   of every sampled token under the policy
    old_log_probs   float[batch pos]   under the policy that sampled
    returns         float[batch pos] for tokens, float[batch] for sequences
    raises          ValueError         unknown level

    A response of 400 tokens has a probability that no float can hold, and a weight that any can. Weights can be very
    large or very small.
    """
    raise NotImplementedError("importance_weights")


def clipped_objective(ratios: Tensor, advantages: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the clipped objective of every token, and its slope.

        objective = min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)          A the token's advantage
        slope     = d objective / d log_prob                                           where ratio = exp(log_prob - c)

    The slope is 0 where the minimum no longer depends on the log-probability. At a ratio of exactly 1 - epsilon or
    1 + epsilon it is ratio * A, as inside the interval.

    ratios       float[token]
    advantages   float[token]   never 0
    returns      (objective, slope), a tuple: float[token] each
    """
    raise NotImplementedError("clipped_objective")


def length_weights(lengths: Tensor, normalization: str, max_length: int | None = None) -> Tensor:
    """Return the factor that every token of a response has in the loss of its batch:

        token_mean        sum over all tokens / number of all tokens
        sequence_mean     mean over responses of (sum over its tokens / number of its tokens)
        constant_length   sum over all tokens / (number of responses * max_length)

    lengths      float[batch]   tokens of each response
    max_length   int            for constant_length alone, and no limit to lengths
    returns      float[batch]
    raises       ValueError     unknown normalization; constant_length without max_length
    """
    raise NotImplementedError("length_weights")


def group_advantages(rewards: Tensor, mode: str) -> Tensor:
    """Return the advantage of each response: its reward, compared with those of its group.

    With mean and std taken over the responses to one prompt:

        mean                  r - mean(r)
        mean_std              (r - mean(r)) / (std(r) + EPS)     the sample's std: divides by trials - 1
        mean_population_std   (r - mean(r)) / (std(r) + EPS)     the population's std: divides by trials

    rewards   float[prompt trial]
    returns   float[prompt trial]
    raises    ValueError            unknown mode
    """
    raise NotImplementedError("group_advantages")


def has_signal(rewards: Tensor) -> Tensor:
    """Return which groups can teach anything: those whose rewards are not all equal.

    Equal means ==, without a tolerance: ten rewards of 1.1 are no signal, though the mean of ten float32 numbers
    of 1.1 is another number; 0.5 and 0.5000001 are one.

    rewards   float[prompt trial]
    returns   bool[prompt]
    """
    raise NotImplementedError("has_signal")


def no_signal_probability(success_probs: Tensor, group_size: int) -> Tensor:
    """Return how likely a group is to teach nothing: each response earns 1 or 0, and all of the group the same.

    success_probs   float[prompt]   that a response earns 1, independent of the others: 0 to 1
    group_size      int             responses to each prompt
    returns         float[prompt]
    """
    raise NotImplementedError("no_signal_probability")


def find_loopholes(prompt: list[int], vocab_size: int) -> list[list[int]]:
    """Return every response that earns the most a sorting reward gives, and is not the sorted prompt.

    The reward is `sort_inclusion_ordering_reward` of lab.py. The sorted prompt always earns the most there is:
    2n - 1 for n tokens.

    prompt       list of n ints
    vocab_size   int              tokens of prompt and response are 0 to vocab_size - 1
    returns      list of responses, each a list of n ints; every loophole once, in any order
    """
    raise NotImplementedError("find_loopholes")


def repaired_reward(prompt: list[int], response: list[int]) -> float:
    """Return a sorting reward without the loophole: only the sorted prompt earns 2n - 1.

        inclusion   tokens that prompt and response have in common, each as often as both have it
        ordering    adjacent pairs of the response that do not descend, one point each
        reward      inclusion + ordering

    prompt     list of n ints
    response   list of n ints
    returns    a float or an int
    """
    raise NotImplementedError("repaired_reward")


def training_memory(parameters: float, method: str) -> float:
    """Return how much memory the models of a training run need, in gigabytes of 10**9 bytes.

        per parameter of a model that is trained   2 bytes of weight (bf16), 2 of gradient (bf16), and two moments
                                                   of Adam (fp32) of 4 bytes each
        per parameter of a frozen model            2 bytes of weight

        ppo    trains a policy and a critic; reference model and reward model are frozen
        grpo   trains a policy; reference model and reward model are frozen

    All models have the same size. Activations are left out; so is the policy that sampled.

    parameters   float        of each model
    returns      a float
    raises       ValueError   unknown method
    """
    raise NotImplementedError("training_memory")


def repaired_grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    rewards: Tensor,
    epsilon: float,
    kl_coefficient: float,
) -> Tensor:
    """Return what `broken_grpo_loss` of broken_grpo.py was meant to be: find its faults, and repair them.

        A       (r - mean(r)) / (std(r) + EPS), over the group, the sample's std; a response's tokens share it
        ratio   exp(log_prob - old_log_prob)
        kl      exp(x) - x - 1                                                         x = ref_log_prob - log_prob
        loss    -mean of min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)   +   kl_coefficient * mean of kl

    Both means are over all tokens of all responses, also of groups whose rewards are all equal.

    log_probs       float[prompt trial pos]   the loss is differentiable in it
    old_log_probs   float[prompt trial pos]
    ref_log_probs   float[prompt trial pos]
    rewards         float[prompt trial]
    returns         float[]                   a tensor

    old_log_probs and ref_log_probs are constants, whatever graph they carry.
    """
    raise NotImplementedError("repaired_grpo_loss")


def clipping_bias(
    probs: Tensor, old_probs: Tensor, advantages: Tensor, epsilon_low: float, epsilon_high: float
) -> Tensor:
    """Return what clipping does to an update on average: the gradient that is followed minus the wanted one.

    Actions come from old_probs, and the policy has moved on to probs. With w = probs / old_probs, action by action:

        wanted     sum over a of  probs[a] * A[a] * score(a)
        followed   sum over a of  old_probs[a] * slope(a) * score(a)
        slope(a)   0 where A[a] > 0 and w[a] > 1 + epsilon_high
                   0 where A[a] < 0 and w[a] < 1 - epsilon_low
                   w[a] * A[a] everywhere else

    A score is the gradient of the action's log-probability under probs with respect to the logits of probs.

    probs        float[action]   softmax(logits)
    old_probs    float[action]
    advantages   float[action]   A
    returns      float[action]
    """
    raise NotImplementedError("clipping_bias")


def kept_group_gradient(probs: Tensor, rewards: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return what a group's gradient estimate is on average where groups without spread are thrown away.

    Groups and their estimates are those of `expected_group_gradient` with the baseline group_mean. Dynamic sampling
    keeps a group if its rewards are not all equal, and samples once more in place of every other group:

        kept       P(the rewards of a group are not all equal)
        gradient   E[ estimate | the rewards of the group are not all equal ]

    probs        float[action]   softmax(logits)
    rewards      float[action]   not all equal
    group_size   int
    returns      (gradient float[action], kept float[]), a tuple
    """
    raise NotImplementedError("kept_group_gradient")


def dynamic_sampling_weights(success_probs: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return by which factor dynamic sampling multiplies what each prompt adds to the expected update.

    A response earns 1 or 0, a group of equal rewards is thrown away, and its place in the batch is filled:

        same_prompt   with another group of the same prompt, until one has a spread: 1 / kept[prompt]
        any_prompt    with a group of any prompt, all equally likely, until one has a spread: 1 / mean of kept

    Here kept[prompt] is the probability that the responses of one group of that prompt do not all earn the same.

    success_probs   float[prompt]   that a response earns 1, independent of the others: above 0, below 1
    group_size      int             responses to each prompt
    returns         (same_prompt float[prompt], any_prompt float[]), a tuple
    """
    raise NotImplementedError("dynamic_sampling_weights")


def ratio_moments(probs: Tensor, old_probs: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return mean and variance of three importance ratios, over all responses that the old policy could write.

    A response is `length` independent tokens from old_probs. With w = probs / old_probs, token by token:

        token        w of its first token
        sequence     the product of the w of all its tokens
        normalized   the product to the power of 1 / length: GSPO's ratio

    probs       float[vocab]   the policy now
    old_probs   float[vocab]   the policy that sampled
    length      int            tokens of a response: few enough to go through every response
    returns     (mean float[ratio], variance float[ratio]), a tuple, in this order
    """
    raise NotImplementedError("ratio_moments")

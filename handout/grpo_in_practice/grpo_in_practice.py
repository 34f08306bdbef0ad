"""GRPO in practice: what the papers since then changed in the loss, and what a run needs around it.

Axes: `prompt` counts prompts, `trial` the responses to one prompt, `batch` all responses, `pos` the positions of their
tokens. `mask` is 1 for a response's tokens, else 0: there other numbers can be infinite or nan, and must not matter.

House rules, for all functions: names, order and defaults of arguments as given; no argument changed; axes of any size,
1 too, in any memory layout; a call depends on its arguments alone, and what it returned stays as it was. Compute where
the arguments are, in the longest dtype of them or a longer one. No exponential of a formula overflows unless its
docstring says so. What is called constant has no gradient, whatever graph it came with. Names of options are exact:
any other is unknown, and the message of its ValueError holds it as given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal

import torch
from torch import Tensor

# Objectives


def policy_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    objective: str = "token",
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
    dual_clip: float | None = None,
    normalization: str = "token_mean",
    max_length: int | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Return the loss of one of three objectives. Every token of a response has that response's advantage A.

        ratio   = exp(log_prob - old_log_prob)
        s       = exp(mean of log_prob - old_log_prob over the response's tokens)
        clip(x) = min(max(x, 1 - epsilon_low), 1 + epsilon_high)

        token       -min(ratio * A, clip(ratio) * A)
        sequence    -min(s * A, clip(s) * A)
        cispo       -constant(clip(ratio)) * A * log_prob

    With dual_clip = c, a token's loss is min(loss, -c * A) where A is negative. Each token's loss is then multiplied by
    its weight, where weights are given, and one number made of all:

        token_mean        sum over all tokens / number of all tokens
        sequence_mean     mean over responses of (sum over the response's tokens / number of its tokens)
        constant_length   sum over all tokens / (number of responses * max_length)

    log_probs       float[batch pos]   of the policy being trained; the loss is differentiable in it
    old_log_probs   float[batch pos]   of the policy that sampled: constants
    advantages      float[batch]       constants
    mask            int64[batch pos]
    weights         float[batch pos]   as `importance_weights` returns them: constants, not in the numbers that
                                       are divided by
    returns         float[]            dtype of log_probs
    raises          ValueError         unknown objective or normalization; dual_clip of 1 or less, or with another
                                       objective than token; constant_length without max_length

    The gradient of `sequence` goes through s to all tokens of the response. A response without any token adds 0 to the
    sum and counts as a response; where no response has any, the loss is 0. The defaults are the loss of PPO; a larger
    epsilon_high is DAPO's.
    """
    raise NotImplementedError("policy_loss")


def kl_penalty(log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, estimator: str = "k3") -> Tensor:
    """Return an estimate of the KL divergence from the reference at each token. With x = ref_log_prob - log_prob:

        k1    -x
        k2    x^2 / 2
        k3    exp(x) - x - 1

    log_probs       float[batch pos]   of the policy that sampled and is trained; the estimate is differentiable in it
    ref_log_probs   float[batch pos]   of the reference model: constants
    mask            int64[batch pos]
    returns         float[batch pos]   0 where mask is 0; dtype of log_probs
    raises          ValueError         unknown estimator
    """
    raise NotImplementedError("kl_penalty")


def rewards_with_kl(
    rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, coefficient: float
) -> Tensor:
    """Return the rewards minus a penalty for the distance from the reference: the other place for the KL divergence.

        reward - coefficient * (sum of log_prob - ref_log_prob over the response's tokens)

    rewards         float[batch]
    log_probs       float[batch pos]   of the policy that sampled
    ref_log_probs   float[batch pos]
    mask            int64[batch pos]
    returns         float[batch]       constants; dtype of rewards
    """
    raise NotImplementedError("rewards_with_kl")


def informative_groups(rewards: Tensor) -> Tensor:
    """Return for each prompt whether its responses earned different rewards: DAPO's dynamic sampling keeps only these.

    rewards   float[prompt trial]   a difference in the last digit is one
    returns   bool[prompt]
    """
    raise NotImplementedError("informative_groups")


def overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """Return what is added to the reward of a response of each length: DAPO's soft overlong punishment.

        0                                           length <= max_length - buffer
        (max_length - buffer - length) / buffer     between the two
        -1                                          length > max_length

    lengths   int64[batch]     tokens of each response
    returns   float32[batch]
    raises    ValueError       buffer below 1, or above max_length
    """
    raise NotImplementedError("overlong_penalty")


def without_truncated(mask: Tensor, truncated: Tensor) -> Tensor:
    """Return the mask without the responses that were cut off before they ended: DAPO's overlong filtering.

    mask        int64[batch pos]
    truncated   bool[batch]
    returns     int64[batch pos]   0 in every row that was truncated
    """
    raise NotImplementedError("without_truncated")


def importance_weights(
    log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float, level: str = "token"
) -> Tensor:
    """Return how much each token counts because another program sampled it: truncated importance sampling.

        token       min(exp(log_prob - sampler_log_prob), cap)
        sequence    min(exp(sum of log_prob - sampler_log_prob over the response's tokens), cap)

    log_probs           float[batch pos]   as the trainer computes them, before any update: old_log_probs
    sampler_log_probs   float[batch pos]   of the same tokens, as the sampler computed them
    mask                int64[batch pos]
    returns             float[batch pos]   at each token, 0 where mask is 0; constants; dtype of log_probs
    raises              ValueError         unknown level; a cap of 0 or less
    """
    raise NotImplementedError("importance_weights")


def accumulate_gradients(
    log_probs_of: Callable[[slice], Tensor],
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    num_parts: int,
    normalization: str = "token_mean",
    max_length: int | None = None,
) -> float:
    """Backpropagate the loss of a batch part by part, and return it.

    The gradients of the parts add up to that of the whole batch's loss: `policy_loss` with this normalization and
    max_length, and else its defaults. In this order, for each part, also for one without any token:

    1. `log_probs_of(rows)`, once: the log-probabilities of the responses `rows`;
    2. `policy_loss` of these responses, called by its name, times the share of the part in the batch: of its tokens for
       token_mean, of its responses for the two others;
    3. backpropagate, so that the part's graph is freed before the next part is computed.

    The parts are consecutive responses; where num_parts does not divide the batch, the first ones have one more.

    log_probs_of    log_probs_of(slice(a, b)) is float[row pos], of the responses from a to b - 1, differentiable
    old_log_probs   float[batch pos]
    advantages      float[batch]
    mask            int64[batch pos]
    num_parts       int                at most the number of responses
    returns         float              a Python number
    """
    raise NotImplementedError("accumulate_gradients")


# Diagnostics, verifier, baselines

BOX = "\\boxed{"  # one backslash: how models are asked to mark an answer


def token_entropies(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the entropy of the distribution that each token was drawn from, in nats.

        entropy[b, k] = - sum over v of p[b, k, v] * log p[b, k, v]          p[b, k] = softmax(logits[b, k])

    A probability of 0 adds 0 to the sum and to its gradient, whether its logit is -inf or only far below the others.

    logits    float[batch pos vocab]   of the token at pos, without a shift; the result is differentiable in it
    mask      int64[batch pos]
    returns   float[batch pos]         0 where mask is 0; dtype of logits
    """
    raise NotImplementedError("token_entropies")


def step_diagnostics(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    entropies: Tensor,
    rewards: Tensor,
    truncated: Tensor,
    ref_log_probs: Tensor | None = None,
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
) -> dict[str, float]:
    """Return what to watch at each step: Python numbers, by name.

    Over the tokens of all responses, each of which counts as much as any other:

        entropy                 mean of the entropies
        clip_fraction_low       share of tokens with an advantage below 0 and a ratio below 1 - epsilon_low, where
                                ratio = exp(log_prob - old_log_prob)
        clip_fraction_high      share of tokens with an advantage above 0 and a ratio above 1 + epsilon_high
        approx_kl_old           mean of exp(x) - x - 1, where x = log_prob - old_log_prob
        approx_kl_ref           mean of exp(x) - x - 1, where x = ref_log_prob - log_prob; left out without
                                ref_log_probs

    Over prompts and responses:

        groups_without_signal   share of prompts whose responses all earned exactly the same reward
        response_length         mean number of tokens of a response
        truncated_share         share of responses that are truncated
        effective_sample_size   (sum of w)^2 / (sum of w^2), where a response has the weight
                                w = exp(sum of log_prob - old_log_prob over its tokens)

    The weights of long responses can be too large or too small for a floating number; the effective sample size is from
    1 to the number of responses even then. A response without any token has the length 0 and the weight 1; where no
    response has any, what is taken over tokens is 0.

    log_probs       float[batch pos]      of the policy after an update
    old_log_probs   float[batch pos]      of the policy that sampled
    advantages      float[batch]
    mask            int64[batch pos]
    entropies       float[batch pos]      as `token_entropies` returns them
    rewards         float[prompt trial]
    truncated       bool[batch]
    ref_log_probs   float[batch pos]      of the reference model
    returns         dict                  these names and no others
    """
    raise NotImplementedError("step_diagnostics")


def gradient_norm(parameters: Iterable[Tensor]) -> float:
    """Return the Euclidean norm of the gradients of all parameters, as if they were one long vector.

        sqrt(sum of g^2 over all entries g of all gradients)

    parameters   each with its gradient in .grad; one whose .grad is None adds nothing. They can be read once only, as
                 model.parameters() can
    returns      float   a Python number; 0 where no parameter has a gradient
    """
    raise NotImplementedError("gradient_norm")


def parse_answer(text: str) -> int | float | None:
    r"""Return the number that a response gives as its answer; None where it gives none.

    That is the last number of the last box, or of the whole text, where it has no box. A box begins with `\boxed{` and
    ends with the next `}` after it; one that is never closed is no box. Where the last box holds no number the answer
    is None.

    Numbers are read from left to right, each in the digits 0 to 9 and as long as it can be:

    - as digits, 1234, or in groups with commas between them: one to three digits, then one or more groups of exactly
      three, 1,234 or 12,345,678; any other comma separates two numbers: 1,23456 is 1 and 23456, and 1,234,5678 is
      1,234 and 5678;
    - after them there can be a decimal point, with at least one digit behind it: 12.50; a point without one ends a
      sentence;
    - before the first digit there can be a sign, with nothing between: plus, minus (the hyphen) or the minus of print,
      U+2212. It is no sign where a letter or a digit, of any script, or a closing bracket, one of ) ] }, stands
      directly before it: 17-25 ends in 25, and a_-5 in -5.

    All else, such as units, letters and currencies, is text, in front of a number and behind it: 5km and $5 are 5.

    text      str                 whatever a model wrote: nothing in it raises an error
    returns   int, float, None    a number without decimal point exactly, one of 10000 digits too
    """
    raise NotImplementedError("parse_answer")


def verify(text: str, answer: float) -> tuple[float, float]:
    r"""Return the two rewards of a response: for its format, and for being right.

        format        1.0 where `\boxed{` stands in the text exactly once, a `}` stands somewhere after it, and
                      parse_answer finds a number
        correctness   1.0 where parse_answer finds a number that is equal to `answer`, in a box or not

    and 0.0 where that is not so. Nearly equal is not equal; 7.0 and 7 are. Call `parse_answer` by its name.

    text      str
    answer    int or float
    returns   (format, correctness)
    """
    raise NotImplementedError("verify")


def baseline_advantages(rewards: Tensor, method: str) -> Tensor:
    """Return the advantages of three methods that GRPO is compared with.

        reinforce     r
        batch_mean    r - mean of all rewards of the batch
        rloo          r - mean of the rewards of the other responses to the same prompt

    rewards   float[prompt trial]
    returns   float[prompt trial]   dtype of rewards
    raises    ValueError            unknown method; rloo with one response per prompt
    """
    raise NotImplementedError("baseline_advantages")


def select_best(rewards: Tensor, min_reward: float = 1.0, count: int = 1) -> Tensor:
    """Return which responses to imitate, as weights: 1 for these, 0 for all others.

    Of each prompt these are the `count` responses with the highest rewards among those that are right: whose reward is
    at least min_reward. Of equal rewards the first come first. Where fewer are right these alone are imitated, and
    where none is, none.

    rewards   float[prompt trial]
    count     int                   can be more than there are responses
    returns   float[prompt trial]   dtype of rewards

    As advantages of `policy_loss` these weights make it imitation.
    """
    raise NotImplementedError("select_best")

"""GRPO on a language model: five functions to complete, in order.

Axes: `prompt` counts prompts, `trial` the responses to one prompt, `batch` all responses (those to one prompt stand
next to each other), `pos` positions in a sequence of tokens, `vocab` the tokens there are.

House rules, for all five: names, order and defaults of parameters as given; no argument modified (but the model and
the optimizer, by `grpo_step` and `train`); any sizes, 1 too, and any layout in memory. The dtype of the numbers that
come in is kept, with no shorter one on the way, and so is their device. Six digits count. What is called constant gets
no gradient, whatever graph it carries. Modes are exact words; the message of the ValueError for any other holds it. No
call depends on earlier ones or changes what they returned.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from addition_task import (
    MAX_NEW_TOKENS,
    Record,
    Reward,
    Rollout,
    TrainingRun,
    mean_response_length,
    problem_batches,
    progress_bar,
    sample_rollout,
    score_rollout,
    sum_reward,
)
from torch import Tensor, nn

EPS = 1e-5  # added to the standard deviation in `mean_std`


def compute_response_log_probs(
    model: Any, input_ids: Tensor, attention_mask: Tensor, prompt_length: int, reduction: str = "sum"
) -> Tensor:
    """Return the log-probabilities that the model gives to the responses, token by token or whole.

        log_probs[b, k] = log softmax(logits[b, prompt_length + k - 1])[ input_ids[b, prompt_length + k] ]

    model            model(input_ids=..., attention_mask=...).logits is float[batch pos vocab]
    input_ids        int64[batch pos]   padding, prompt, response, padding
    attention_mask   int64[batch pos]   1 for the tokens of prompt and response, 0 for padding
    prompt_length    positions before the first response token, padding included
    reduction        "none": float[batch response_pos], 0 for a token whose attention_mask is 0, whatever the
                     logits are that predict it
                     "sum": float[batch], the log-probability of each whole response
    returns          natural logarithms; connected to the model's parameters wherever the caller records gradients,
                     and nowhere else
    raises           ValueError         unknown reduction

    attention_mask alone says what is padding: any id can be a token. Call the model once, with those two keywords and
    nothing else, as it is: no `train()`, no `eval()`, no `zero_grad()`, no copy.
    """
    raise NotImplementedError("compute_response_log_probs")


def group_advantages(rewards: Tensor, mode: str = "mean_std") -> Tensor:
    """Return the advantage of each response: its reward, compared with the others' of its group.

    With mean and std taken over the responses to one prompt:

        mean            r - mean(r)
        mean_std        (r - mean(r)) / (std(r) + EPS)
        leave_one_out   r - mean of the rewards of the *other* responses to the same prompt

    std is the sample standard deviation. Rewards that nearly agree are no special case: there is no threshold.

    rewards   float[prompt trial]
    returns   float[prompt trial]
    raises    ValueError            unknown mode; mean_std or leave_one_out with one response per prompt
    """
    raise NotImplementedError("group_advantages")


def grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    normalization: str = "token_mean",
    epsilon: float = 0.2,
    kl_coefficient: float = 0.0,
    ref_log_probs: Tensor | None = None,
    max_length: int | None = None,
) -> Tensor:
    """Return GRPO's loss. Every token of a response has that response's advantage A. Per token:

        ratio = exp(log_prob - old_log_prob)
        loss  = -min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)
                + kl_coefficient * (exp(x) - x - 1)                             x = ref_log_prob - log_prob

    then one number from all of them, over the tokens that `mask` marks with 1:

        token_mean        sum over all tokens / number of all tokens
        sequence_mean     mean over responses of (sum over the response's tokens / number of its tokens)
        constant_length   sum over all tokens / (number of responses * max_length)

    log_probs        float[batch pos]   of the policy being trained, differentiable
    old_log_probs    float[batch pos]   of the policy that sampled, constants
    advantages       float[batch]       constants
    mask             int64[batch pos]   1 for a response's tokens; what stands at a 0, also infinity or nan, matters
                                        neither to the loss nor to its gradient
    kl_coefficient   ref_log_probs is needed, and used, only where it is not 0
    ref_log_probs    float[batch pos]   of the reference model, constants
    max_length       int, for constant_length alone
    returns          float[]
    raises           ValueError         unknown normalization; constant_length without max_length; a kl_coefficient
                                        other than 0 without ref_log_probs

    A response without any token adds 0 to the sum and counts as a response. Only the ratio is clipped.
    Log-probabilities can be very negative, but no exponential overflows.
    """
    raise NotImplementedError("grpo_loss")


def grpo_step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    rewards: Tensor,
    *,
    old_log_probs: Tensor | None = None,
    ref_log_probs: Tensor | None = None,
    advantage_mode: str = "mean_std",
    normalization: str = "token_mean",
    epsilon: float = 0.2,
    kl_coefficient: float = 0.0,
    max_length: int | None = None,
    max_grad_norm: float = 1.0,
) -> float:
    """Update the model once on a rollout, and return the loss before the update. In this order:

    1. advantages of the rewards in `advantage_mode`, one per response of the batch;
    2. log-probabilities of the responses' tokens (reduction "none") under the model as it is now;
    3. the loss; where old_log_probs is None, those of 2. take their place, detached, without a second pass;
    4. clear the gradients, backpropagate, clip them with `torch.nn.utils.clip_grad_norm_(model.parameters(),
       max_grad_norm)`, and let the optimizer step: once a call, whatever the rewards are.

    rollout         its attention_mask from prompt_length on is the mask of the loss
    rewards         float[prompt trial]
    old_log_probs   float[batch response_pos]   of the policy that sampled, or None
    ref_log_probs   float[batch response_pos]   of the reference model
    returns         float

    Hand all options on, as they are. Call your other functions by their names: the grader puts stand-ins in their
    place. Never switch the model's train/eval flag.
    """
    raise NotImplementedError("grpo_step")


def train(
    model: Any,
    tokenizer: Any,
    problems: Sequence[str],
    *,
    reward_fn: Reward = sum_reward,
    num_steps: int = 60,
    num_prompts: int = 16,
    num_responses: int = 8,
    num_inner_steps: int = 2,
    max_new_tokens: int = MAX_NEW_TOKENS,
    advantage_mode: str = "mean_std",
    normalization: str = "token_mean",
    epsilon: float = 0.2,
    kl_coefficient: float = 0.0,
    learning_rate: float = 2e-4,
    max_grad_norm: float = 1.0,
    seed: int = 0,
    progress: bool = True,
) -> TrainingRun:
    """Train the model on the problems; return it, with one record per inner step.

    Before training, in this order:

    1. `torch.manual_seed(seed)`, once;
    2. `model.eval()`, once: dropout stays off to the end and after it;
    3. `torch.optim.Adam` with `lr=learning_rate` over the model's parameters, kept to the end as it is;
    4. if kl_coefficient is not 0, the reference model: a deep copy of the model as it is now, kept to the end.

    Each step (from 0; loop over `progress_bar(problem_batches(problems, num_steps, num_prompts, seed), progress,
    num_steps)`), in this order:

    1. sample once: `sample_rollout(model, tokenizer, <the step's problems>, num_responses, max_new_tokens)`;
    2. rewards: `score_rollout(rollout, reward_fn)`;
    3. log-probabilities that stay constant for the step, computed once and under `torch.no_grad()`, token by token: the
       current model's (old_log_probs), and the reference model's if kl_coefficient is not 0;
    4. num_inner_steps calls of grpo_step on the same rollout, whatever its rewards are, with all options, and
       max_new_tokens as max_length; after each, a record.

    A record is `Record(step, inner_step, loss, mean_reward, response_length)`: the loss that grpo_step returned, the
    mean of the rollout's rewards as a Python float, `mean_response_length(rollout)`.

    returns   TrainingRun(model, records)

    Draw no other random numbers. Call your other functions, and what is imported from addition_task, by these names.
    """
    raise NotImplementedError("train")

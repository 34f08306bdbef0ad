"""Policy gradient on the sorting task: six functions to complete, in order. README.md derives the formulas.

Axes: `batch` counts prompts, `trial` the responses to one prompt, `pos` the tokens of one response, `vocab` the
numbers that a token can be. `float[batch trial pos]` is one number per token of every response.

House rules, for all six: names, order and defaults of parameters as given; no argument modified; any sizes, 1 too, and
any layout in memory (`reshape` works where `view` refuses). The dtype of the numbers that come in is kept, float32 or
float64, with no shorter one on the way. Log-probabilities can be very negative, and six digits must be right then, too.
What is called constant gets no gradient, whatever graph it carries. Modes are exact words; the message of the
ValueError for any other holds it. No call depends on earlier ones or changes what they returned.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce, repeat  # noqa: F401 (here for whoever names axes with it)
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    Reward,
    generate_responses,
    progress_bar,
    sort_inclusion_ordering_reward,
)
from torch import Tensor, nn

EPS = 1e-5  # added to the standard deviation in `normalized_rewards`


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Reward) -> Tensor:
    """Return the reward of every response to every prompt.

        rewards[i, j] = reward_fn(prompt i, response j to prompt i)

    Call `reward_fn(prompt, response)` exactly once per response, also where two are equal, with plain lists of ints
    made for that call. If it raises, let that exception through as it is.

    prompts     int[batch prompt_pos]
    responses   int[batch trial pos]
    reward_fn   takes its two arguments by position and returns an int or a float
    returns     float32[batch trial]   what reward_fn returned; requires no grad
    """
    ### BEGIN SOLUTION
    rewards = [
        [float(reward_fn(prompt.tolist(), response.tolist())) for response in trials]
        # equivalent: there are as many prompts as groups of responses
        for prompt, trials in zip(prompts, responses, strict=True)
    ]
    # equivalent: it is float32 already; Python floats become float32; the responses are on the CPU
    return torch.tensor(rewards, dtype=torch.float32, device=responses.device)
    ### END SOLUTION


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    """Return the deltas: the numbers that multiply the gradient of each response's log-probability.

    With mean, std and max taken over the responses to one prompt:

        rewards              delta = r
        centered_rewards     delta = r - mean(r)
        normalized_rewards   delta = (r - mean(r)) / (std(r) + EPS)
        max_rewards          delta = r where r == max(r), else 0

    std is the sample standard deviation (it divides by the number of responses minus 1). However small or large it is,
    the formula holds: nothing is clipped, rounded or replaced. In max_rewards every response that ties for the maximum
    keeps its reward, also a negative one.

    rewards   float[batch trial]
    mode      one of these four
    returns   float[batch trial]
    raises    ValueError   unknown mode; normalized_rewards with one response to each prompt
    """
    ### BEGIN SOLUTION
    if mode == "rewards":
        return rewards.clone()  # equivalent: the argument itself may be returned
    if mode == "max_rewards":
        # equivalent: torch.where takes the wider dtype; the last axis is axis 1
        return torch.where(rewards == rewards.amax(dim=-1, keepdim=True), rewards, torch.zeros_like(rewards))
    if mode not in ("centered_rewards", "normalized_rewards"):
        raise ValueError(f"Unknown deltas mode: {mode!r}")
    centered = rewards - rewards.mean(dim=-1, keepdim=True)  # equivalent: the last axis is axis 1
    if mode == "centered_rewards":
        return centered
    if rewards.shape[-1] < 2:  # equivalent: the last axis is axis 1
        raise ValueError("normalized_rewards needs at least two responses: one has no spread")
    return centered / (rewards.std(dim=-1, keepdim=True) + EPS)  # equivalent: the last axis is axis 1
    ### END SOLUTION


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    """Return the log-probability that the model gives to every token of every response.

        log_probs[i, j, k] = log softmax(model(prompts)[i, k])[ responses[i, j, k] ]

    prompts     int[batch prompt_pos]
    responses   int[batch trial pos]
    model       maps int[batch prompt_pos] to logits float[batch pos vocab]
    returns     float[batch trial pos]   natural logarithms; connected to the model, whether it is in training or not

    Leave the model as it is, its accumulated gradients included: no `eval()`, not even around the call, no copy.
    """
    ### BEGIN SOLUTION
    log_probs = F.log_softmax(model(prompts), dim=-1)  # batch pos vocab
    log_probs = repeat(log_probs, "batch pos vocab -> batch trial pos vocab", trial=responses.shape[1])
    return log_probs.gather(dim=-1, index=responses.unsqueeze(-1)).squeeze(-1)  # batch trial pos
    ### END SOLUTION


def compute_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    epsilon: float = 0.2,
) -> Tensor:
    """Return the loss whose descent raises the probability of responses with positive delta.

    Every token of a response gets that response's delta. With the mean over all of batch, trial and pos:

        naive       loss = -mean(delta * log_prob)
        unclipped   loss = -mean(ratio * delta)                      ratio = exp(log_prob - old_log_prob)
        clipped     loss = -mean(min(ratio * delta, clip(ratio, 1 - epsilon, 1 + epsilon) * delta))

    log_probs       float[batch trial pos]   of the policy being trained; the loss is differentiable in it
    deltas          float[batch trial]       constants
    mode            one of these three
    old_log_probs   float[batch trial pos]   of the policy that sampled, constants; naive ignores them
    epsilon         half-width of the clipping interval; 0 is a value like any other
    returns         float[]
    raises          ValueError               unknown mode; unclipped or clipped without old_log_probs

    Responses with delta 0 count in the mean; where all deltas are 0 the loss is 0 and can be differentiated. Ratios can
    be very large or small, but do not overflow; only the ratio in mode clipped is limited.
    """
    ### BEGIN SOLUTION
    if mode not in ("naive", "unclipped", "clipped"):  # equivalent: the result has the wider dtype all the same
        raise ValueError(f"Unknown loss mode: {mode!r}")
    deltas = rearrange(deltas.detach(), "batch trial -> batch trial 1")  # one for all tokens
    if mode == "naive":
        return -torch.mean(log_probs * deltas)
    if old_log_probs is None:
        raise ValueError(f"Loss mode {mode!r} needs old_log_probs")
    ratio = torch.exp(log_probs - old_log_probs.detach())  # batch trial pos
    if mode == "unclipped":
        return -torch.mean(ratio * deltas)
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon)  # batch trial pos
    return -torch.mean(torch.minimum(ratio * deltas, clipped_ratio * deltas))
    ### END SOLUTION


def compute_kl_penalty(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Return an estimate of KL(model || reference) from responses that the model sampled.

    Per token, with x = ref_log_prob - log_prob:

        k3 = exp(x) - x - 1

    summed over pos, then averaged over batch and trial. However near or far the two are, the formula holds: x is not
    limited, and exp(x) does not overflow.

    log_probs       float[batch trial pos]   of the policy being trained; the penalty is differentiable in it
    ref_log_probs   float[batch trial pos]   of the reference model, constants
    returns         float[]
    """
    ### BEGIN SOLUTION
    log_ratio = ref_log_probs.detach() - log_probs  # batch trial pos
    per_token = torch.exp(log_ratio) - log_ratio - 1
    return reduce(per_token, "batch trial pos -> batch trial", "sum").mean()
    ### END SOLUTION


def run_policy_gradient(
    prompts: list[list[int]] = DEFAULT_PROMPTS,
    *,
    num_epochs: int = 100,
    num_steps_per_epoch: int = 10,
    compute_ref_model_period: int = 10,
    num_responses: int = 10,
    deltas_mode: str = "rewards",
    loss_mode: str = "naive",
    kl_penalty: float = 0.0,
    epsilon: float = 0.2,
    reward_fn: Reward = sort_inclusion_ordering_reward,
    learning_rate: float = 1e-3,
    seed: int = 5,
    progress: bool = True,
) -> PolicyGradientRun:
    """Return the trained model and one record per inner step.

    Before training, in this order:

    1. `torch.manual_seed(seed)`, once;
    2. `model = Model(...)` with vocab_size = largest prompt token + 1 (a Python int), embedding_dim =
       EMBEDDING_DIM, prompt_length = response_length = number of tokens in one prompt;
    3. `torch.optim.Adam` with `lr=learning_rate` over the parameters of this model, kept to the end as it is.

    Each epoch (counted from 0; loop over `progress_bar(range(num_epochs), progress)`), in this order:

    1. if kl_penalty is not 0 and epoch is a multiple of compute_ref_model_period (0 is): the reference model becomes
       a deep copy of the model as it is now;
    2. sample once: `generate_responses(prompts, model, num_responses)`;
    3. rewards of these responses, then their deltas, each computed once;
    4. log-probabilities that stay constant for the epoch, computed once and without a graph: the reference
       model's if kl_penalty is not 0, and the current model's (old_log_probs) if loss_mode is not "naive";
    5. num_steps_per_epoch inner steps on the same responses, also where all deltas are 0: nothing ends early.

    Each inner step: log-probabilities of the model as it is now, computed once; the loss, with old_log_probs and
    epsilon handed on; plus `kl_penalty * compute_kl_penalty(...)` if kl_penalty is not 0; append a record; then
    clear the gradients, backpropagate, and let Adam step. The model stays in training mode.

    A record is `Record(epoch, step, loss, mean_reward)`: step counts inner steps over the whole run, from 0; loss is
    the whole loss before the update, mean_reward the mean of this epoch's rewards, both as Python floats.

    prompts   equally long lists of ints; make an int64 tensor int[batch pos] of them, in their order, equal ones too
    returns   PolicyGradientRun(model, records)   the model as it is after the last step

    Call your other five functions, `Model` and `generate_responses` by these names: the grader puts stand-ins in their
    place. Draw no other random numbers: no second seeding, no new `Model`, no extra sampling.
    """
    ### BEGIN SOLUTION
    torch.manual_seed(seed)
    prompt_tokens = torch.tensor(prompts)  # batch pos
    prompt_length = prompt_tokens.shape[1]
    model = Model(int(prompt_tokens.max()) + 1, EMBEDDING_DIM, prompt_length, prompt_length)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records: list[Record] = []

    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompt_tokens, model, num_responses)  # batch trial pos
        rewards = compute_reward(prompt_tokens, responses, reward_fn)  # batch trial
        deltas = compute_deltas(rewards, deltas_mode)  # batch trial
        ref_log_probs = old_log_probs = None
        with torch.no_grad():
            if kl_penalty != 0:
                ref_log_probs = compute_log_probs(prompt_tokens, responses, ref_model)  # batch trial pos
            if loss_mode != "naive":  # equivalent: the naive loss does not read these log-probs
                old_log_probs = compute_log_probs(prompt_tokens, responses, model)  # batch trial pos

        for inner_step in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompt_tokens, responses, model)  # batch trial pos
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=old_log_probs, epsilon=epsilon)
            if ref_log_probs is not None:
                # equivalent: the loss was made here
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            step = epoch * num_steps_per_epoch + inner_step
            records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return PolicyGradientRun(model, records)
    ### END SOLUTION

"""The reference is a function: the model's forward pass bound to a copy of its weights by functools.partial."""

from functools import partial

import torch
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    generate_responses,
    progress_bar,
    sort_inclusion_ordering_reward,
)
from torch.func import functional_call

mean_over = partial(torch.mean, dim=-1, keepdim=True)
std_over = partial(torch.std, dim=-1, keepdim=True, correction=1)
max_over = partial(torch.amax, dim=-1, keepdim=True)
EPS = 1e-5


def compute_reward(prompts, responses, reward_fn):
    reward_of = lambda prompt: lambda response: float(reward_fn(prompt.tolist(), response.tolist()))
    return torch.tensor([[*map(reward_of(prompt), group)] for prompt, group in zip(prompts, responses)])


def need_spread(r):
    if r.shape[-1] < 2:
        raise ValueError("std of one number")
    return std_over(r)


DELTAS = dict(
    rewards=lambda r: r,
    centered_rewards=lambda r: r - mean_over(r),
    normalized_rewards=lambda r: (r - mean_over(r)) / (need_spread(r) + EPS),
    max_rewards=lambda r: torch.where(r == max_over(r), r, torch.zeros_like(r)),
)

OBJECTIVES = dict(
    naive=lambda d, new, old, epsilon: d * new,
    unclipped=lambda d, new, old, epsilon: d * ratio(new, old),
    clipped=lambda d, new, old, epsilon: torch.min(
        d * ratio(new, old), d * ratio(new, old).clamp(1 - epsilon, 1 + epsilon)
    ),
)


def ratio(new, old):
    if old is None:
        raise ValueError("a ratio has a denominator: old_log_probs")
    return (new - old.detach()).exp()


def chosen_from(table, mode):
    if mode in table:
        return table[mode]
    raise ValueError("%s is none of %s" % (mode, list(table)))


def compute_deltas(rewards, mode):
    return chosen_from(DELTAS, mode)(rewards)


def compute_log_probs(prompts, responses, model):
    log_probs = model(prompts).log_softmax(-1)
    return torch.stack([log_probs.gather(-1, trial.unsqueeze(-1)).squeeze(-1) for trial in responses.unbind(1)], 1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    return -chosen_from(OBJECTIVES, mode)(deltas.detach()[..., None], log_probs, old_log_probs, epsilon).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    k3 = lambda x: x.exp() - x - 1
    return k3(ref_log_probs.detach() - log_probs).sum(-1).mean()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS,
    *,
    num_epochs=100,
    num_steps_per_epoch=10,
    compute_ref_model_period=10,
    num_responses=10,
    deltas_mode="rewards",
    loss_mode="naive",
    kl_penalty=0.0,
    epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward,
    learning_rate=1e-3,
    seed=5,
    progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    score = partial(compute_log_probs, prompts)
    objective = partial(compute_loss, mode=loss_mode, epsilon=epsilon)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
            reference = partial(functional_call, model, weights)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = score(responses, reference) if kl_penalty != 0 else None
            old = score(responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = score(responses, model)
            loss = objective(log_probs, deltas, old_log_probs=old)
            if ref is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

"""Decorators everywhere: they register modes, check arguments and results, and choose the gradient mode."""

import copy
import functools
import inspect

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


def checked(**dims):
    """Check the number of axes of named arguments."""

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            for name, ndim in dims.items():
                value = bound.arguments.get(name)
                if value is not None and value.ndim != ndim:
                    raise TypeError(f"{name} has {value.ndim} axes, but should have {ndim}")
            return function(*args, **kwargs)

        return wrapper

    return decorate


def modes_of(registry):
    def mode(name):
        def decorate(function):
            registry[name] = function
            return function

        return decorate

    return mode


DELTAS, LOSSES = {}, {}
delta_mode, loss_mode_named = modes_of(DELTAS), modes_of(LOSSES)


def dispatch(registry, mode):
    if mode not in registry:
        raise ValueError(f"{mode!r} is not registered; there are {', '.join(registry)}")
    return registry[mode]


def needs_old(function):
    @functools.wraps(function)
    def wrapper(log_probs, deltas, old_log_probs, epsilon):
        if old_log_probs is None:
            raise ValueError(f"{function.__name__} needs old_log_probs")
        return function(torch.exp(log_probs - old_log_probs.detach()), deltas, epsilon)

    return wrapper


@checked(prompts=2, responses=3)
@torch.no_grad()
def compute_reward(prompts, responses, reward_fn):
    return torch.tensor(
        [
            [reward_fn(prompts[i].tolist(), responses[i, j].tolist()) for j in range(responses.shape[1])]
            for i in range(responses.shape[0])
        ],
        dtype=torch.float32,
    )


@delta_mode("rewards")
def raw(r):
    return r


@delta_mode("centered_rewards")
def centered(r):
    return r - r.mean(-1, keepdim=True)


@delta_mode("normalized_rewards")
def normalized(r):
    if r.shape[-1] < 2:
        raise ValueError("two responses, please")
    return centered(r) / (r.std(-1, keepdim=True) + 1e-5)


@delta_mode("max_rewards")
def best(r):
    return r * r.eq(r.amax(-1, keepdim=True))


@checked(rewards=2)
def compute_deltas(rewards, mode):
    return dispatch(DELTAS, mode)(rewards)


@checked(prompts=2, responses=3)
def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1)
    return torch.einsum(
        "bpv,btpv->btp", log_probs, torch.eye(log_probs.shape[-1], dtype=log_probs.dtype)[responses]
    )


@loss_mode_named("naive")
def naive(log_probs, deltas, old_log_probs, epsilon):
    return -(log_probs * deltas).mean()


@loss_mode_named("unclipped")
@needs_old
def unclipped(ratio, deltas, epsilon):
    return -(ratio * deltas).mean()


@loss_mode_named("clipped")
@needs_old
def clipped(ratio, deltas, epsilon):
    return -torch.minimum(ratio * deltas, ratio.clamp(1 - epsilon, 1 + epsilon) * deltas).mean()


@checked(log_probs=3, deltas=2, old_log_probs=3)
def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    return dispatch(LOSSES, mode)(log_probs, deltas.detach().unsqueeze(-1), old_log_probs, epsilon)


@checked(log_probs=3, ref_log_probs=3)
def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return (torch.exp(x) - x - 1).sum(-1).mean()


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
    records = []

    @torch.no_grad()
    def prepare(epoch, reference):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            reference = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        ref = compute_log_probs(prompts, responses, reference) if reference is not None else None
        old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        return reference, responses, rewards, deltas, ref, old

    @torch.enable_grad()
    def update(responses, deltas, ref, old):
        optimizer.zero_grad()
        log_probs = compute_log_probs(prompts, responses, model)
        loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
        if ref is not None:
            loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
        loss.backward()
        optimizer.step()
        return loss.item()

    reference = None
    for epoch in progress_bar(range(num_epochs), progress):
        reference, responses, rewards, deltas, ref, old = prepare(epoch, reference)
        for inner in range(num_steps_per_epoch):
            loss = update(responses, deltas, ref, old)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss, rewards.mean().item()))
    return PolicyGradientRun(model, records)

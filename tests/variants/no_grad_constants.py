"""Nothing is ever detached: constants are copied under no_grad, or made under inference_mode and used as they are."""

import copy

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


@torch.no_grad()
def constant(tensor):
    return tensor * 1


@torch.inference_mode()
def score_constant(prompts, responses, policy):
    return compute_log_probs(prompts, responses, policy)


@torch.no_grad()
def compute_reward(prompts, responses, reward_fn):
    rewards = torch.ones(len(prompts), responses.shape[1])
    for i in range(len(prompts)):
        for j in range(responses.shape[1]):
            rewards[i, j] *= reward_fn(prompts[i].tolist(), responses[i, j].tolist())
    return rewards


@torch.no_grad()
def compute_deltas(rewards, mode):
    mode_is = mode.__eq__
    if mode_is("rewards"):
        return rewards.clone()
    if mode_is("max_rewards"):
        return torch.where(rewards == rewards.amax(dim=1, keepdim=True), rewards, 0)
    if mode_is("centered_rewards"):
        return rewards - rewards.mean(dim=1, keepdim=True)
    if mode_is("normalized_rewards"):
        if rewards.shape[1] < 2:
            raise ValueError("at least two responses are needed")
        return rewards.sub(rewards.mean(dim=1, keepdim=True)).div_(rewards.std(dim=1, keepdim=True).add_(1e-5))
    raise ValueError("mode: " + mode)


@torch.enable_grad()
def log_probs_of_all_tokens(prompts, model):
    return model(prompts).log_softmax(-1)


def compute_log_probs(prompts, responses, model):
    if torch.is_grad_enabled():
        log_probs = log_probs_of_all_tokens(prompts, model)
    else:
        log_probs = model(prompts).log_softmax(-1)
    tokens = responses.movedim(1, 2)
    return log_probs.gather(-1, tokens).movedim(2, 1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    weight = constant(deltas)[:, :, None]
    if mode == "naive":
        return -(weight * log_probs).mean()
    if not (mode == "unclipped" or mode == "clipped"):
        raise ValueError("mode: " + mode)
    if old_log_probs is None:
        raise ValueError("old_log_probs: None")
    ratio = torch.exp(log_probs - constant(old_log_probs))
    if mode == "unclipped":
        return -(weight * ratio).mean()
    with torch.no_grad():  # which tokens have nothing to gain: a constant mask
        free = torch.where(weight >= 0, ratio <= 1 + epsilon, ratio >= 1 - epsilon)
        bound = torch.where(weight >= 0, ratio.new_tensor(1 + epsilon), ratio.new_tensor(1 - epsilon))
    return -(weight * torch.where(free, ratio, bound)).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = constant(ref_log_probs) - log_probs
    return (torch.exp(x) - x - 1).sum(2).mean()


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
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
            ref_model.requires_grad_(False).eval()
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        old = score_constant(prompts, responses, model) if loss_mode != "naive" else None
        ref = score_constant(prompts, responses, ref_model) if kl_penalty != 0 else None
        for inner in range(num_steps_per_epoch):
            with torch.set_grad_enabled(True):
                log_probs = compute_log_probs(prompts, responses, model)
                loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
                if kl_penalty != 0:
                    loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

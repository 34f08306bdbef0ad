"""The reference is a copy of the weights, put into the model for one forward pass and taken out again."""

import contextlib

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


def snapshot(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


@contextlib.contextmanager
def wearing(model, weights):
    own = snapshot(model)
    model.load_state_dict(weights)
    try:
        yield model
    finally:
        model.load_state_dict(own)


def compute_reward(prompts, responses, reward_fn):
    rewards = torch.full(responses.shape[:2], float("nan"))
    for (i, prompt) in enumerate(prompts):
        for (j, response) in enumerate(responses[i]):
            rewards[i][j] = float(reward_fn(prompt.tolist(), response.tolist()))
    return rewards


def compute_deltas(rewards, mode):
    deltas = torch.empty_like(rewards)
    if mode == "rewards":
        deltas.copy_(rewards)
    elif mode == "centered_rewards":
        torch.sub(rewards, rewards.mean(1, keepdim=True), out=deltas)
    elif mode == "normalized_rewards":
        if rewards.shape[1] < 2:
            raise ValueError("too few responses to normalise")
        torch.sub(rewards, rewards.mean(1, keepdim=True), out=deltas)
        deltas.div_(rewards.std(1, keepdim=True) + 1e-5)
    elif mode == "max_rewards":
        deltas.zero_()
        winners = rewards == rewards.max(1, keepdim=True).values
        deltas.masked_scatter_(winners, rewards[winners])
    else:
        raise ValueError(f"what is {mode!r}?")
    return deltas


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)[:, None]  # batch 1 pos vocab
    chosen = torch.take_along_dim(logits, responses[..., None], dim=-1)[..., 0]
    return chosen - logits.logsumexp(dim=-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode == "naive":
        weight, quantity = deltas, log_probs
    elif mode == "unclipped" or mode == "clipped":
        if old_log_probs is None:
            raise ValueError("which old policy?")
        weight, quantity = deltas, torch.exp(log_probs - old_log_probs.detach())
    else:
        raise ValueError(f"what is {mode!r}?")
    weight = weight.detach().unsqueeze(-1).broadcast_to(quantity.shape)
    objective = weight * quantity
    if mode == "clipped":
        pessimistic = weight * quantity.clamp(1 - epsilon, 1 + epsilon)
        objective = torch.where(pessimistic < objective, pessimistic, objective)
    return 0 - objective.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach().sub(log_probs)
    return x.exp().sub(x).sub(1).sum(-1).mean()


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
            ref_weights = snapshot(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            if kl_penalty != 0:
                with wearing(model, ref_weights):
                    ref = compute_log_probs(prompts, responses, model)
            old = None
            if loss_mode != "naive":
                old = compute_log_probs(prompts, responses, model)
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

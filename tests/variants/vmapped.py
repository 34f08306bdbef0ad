"""One prompt at a time on paper, all of them at once by torch.vmap."""

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
from torch import vmap


def compute_reward(prompts, responses, reward_fn):
    def of_prompt(prompt, group):
        return [float(reward_fn(prompt.tolist(), response.tolist())) for response in group]

    return torch.tensor(list(map(of_prompt, prompts, responses)))


def centered(row):
    return row - row.mean()


def normalized(row):
    return centered(row) / (row.std() + 1e-5)


def best(row):
    return torch.where(row == row.max(), row, torch.zeros_like(row))


def compute_deltas(rewards, mode):
    if mode == "normalized_rewards" and rewards.shape[1] < 2:
        raise ValueError("normalized_rewards: at least two responses")
    for name, rule in (
        ("rewards", torch.clone),
        ("centered_rewards", centered),
        ("normalized_rewards", normalized),
        ("max_rewards", best),
    ):
        if mode == name:
            return vmap(rule)(rewards)
    raise ValueError(f"no such mode: {mode}")


def look_up(log_probs, response):
    """log_probs [pos vocab], response [pos] -> [pos]"""
    return log_probs.gather(1, response.unsqueeze(1)).squeeze(1)


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1)
    over_trials = vmap(look_up, in_dims=(None, 0))
    return vmap(over_trials)(log_probs, responses)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"no such mode: {mode}")
    if mode != "naive" and old_log_probs is None:
        raise ValueError(f"{mode}: old_log_probs is missing")

    def objective(delta, new, old):
        """One response: a number, [pos], [pos] -> [pos]"""
        if mode == "naive":
            return delta * new
        ratio = torch.exp(new - old)
        if mode == "unclipped":
            return delta * ratio
        return torch.minimum(delta * ratio, delta * torch.clamp(ratio, 1 - epsilon, 1 + epsilon))

    old = log_probs if old_log_probs is None else old_log_probs
    return -vmap(vmap(objective))(deltas.detach(), log_probs, old.detach()).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    def of_response(new, ref):
        x = ref - new
        return torch.sum(torch.exp(x) - x - 1)

    return vmap(vmap(of_response))(log_probs, ref_log_probs.detach()).mean()


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
    model = Model(prompts.amax().item() + 1, EMBEDDING_DIM, *2 * prompts.shape[1:])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, foreach=False)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)

        @torch.no_grad()
        def frozen(policy):
            return compute_log_probs(prompts, responses, policy)

        ref = frozen(ref_model) if kl_penalty != 0 else None
        old = frozen(model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + compute_kl_penalty(log_probs, ref).mul(kl_penalty)
            records.append(Record(epoch, num_steps_per_epoch * epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

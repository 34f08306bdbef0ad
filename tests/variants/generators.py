"""Training as a generator of records: whoever wants the next record takes the next step."""

import copy
from itertools import chain, count, islice

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


def scores(prompts, responses, reward_fn):
    for prompt, group in zip(prompts, responses, strict=True):
        for response in group:
            yield float(reward_fn(prompt.tolist(), response.tolist()))


def compute_reward(prompts, responses, reward_fn):
    stream = scores(prompts, responses, reward_fn)
    trials = responses.shape[1]
    return torch.tensor([list(islice(stream, trials)) for _ in prompts])


def compute_deltas(rewards, mode):
    def rows():
        for row in rewards:
            if mode == "rewards":
                yield row
                continue
            if mode == "max_rewards":
                yield row.masked_fill(row != row.max(), 0)
                continue
            centered = row - row.mean()
            yield centered if mode == "centered_rewards" else centered / (row.std() + 1e-5)

    if mode not in {"rewards", "centered_rewards", "normalized_rewards", "max_rewards"}:
        raise ValueError(f"{mode} is unknown")
    if mode == "normalized_rewards" and rewards.shape[1] < 2:
        raise ValueError("one response per prompt")
    return torch.stack(tuple(rows()))


def compute_log_probs(prompts, responses, model):
    log_probs = model(prompts).log_softmax(-1)
    picked = (table.gather(1, group.T).T for table, group in zip(log_probs, responses, strict=True))
    return torch.stack(list(picked))


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    def objectives():
        if mode == "naive":
            yield log_probs * weight
            return
        ratio = (log_probs - old_log_probs.detach()).exp()
        yield ratio * weight
        if mode == "clipped":
            yield ratio.clamp(1 - epsilon, 1 + epsilon) * weight

    if mode not in {"naive", "unclipped", "clipped"}:
        raise ValueError(f"{mode} is unknown")
    if mode != "naive" and old_log_probs is None:
        raise ValueError(f"{mode} without old_log_probs")
    weight = deltas.detach().unsqueeze(-1)
    return -torch.stack([*objectives()]).amin(dim=0).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return sum((torch.exp(column) - column - 1 for column in x.unbind(-1)), start=torch.zeros_like(x[..., 0])).mean()


def steps(model, optimizer, loss_now, number):
    for _ in range(number):
        loss = loss_now()
        value = loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield value


def references(model, period):
    """The reference of each epoch, for ever."""
    while True:
        reference = copy.deepcopy(model)
        for _ in range(period):
            yield reference


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
    reference = references(model, compute_ref_model_period)

    def epoch_losses():
        ref_model = next(reference) if kl_penalty != 0 else None
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None

        def loss_now():
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            return loss if ref is None else loss + kl_penalty * compute_kl_penalty(log_probs, ref)

        mean_reward = rewards.mean().item()
        return ((loss, mean_reward) for loss in steps(model, optimizer, loss_now, num_steps_per_epoch))

    def history():
        for epoch in progress_bar(range(num_epochs), progress):
            for loss, mean_reward in epoch_losses():
                yield epoch, loss, mean_reward

    records = [Record(epoch, step, loss, mean) for step, (epoch, loss, mean) in zip(count(), chain(history()))]
    return PolicyGradientRun(model, records)

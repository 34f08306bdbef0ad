"""Modes as enumerations, whose own ValueError names an unknown one; Adam steps by a closure."""

import copy
import enum

import torch
import torch.nn.functional as F
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


class Delta(enum.Enum):
    RAW = "rewards"
    CENTERED = "centered_rewards"
    NORMALIZED = "normalized_rewards"
    BEST = "max_rewards"


class Loss(str, enum.Enum):
    NAIVE = "naive"
    UNCLIPPED = "unclipped"
    CLIPPED = "clipped"

    @property
    def is_ratio(self):
        return self is not Loss.NAIVE


def compute_reward(prompts, responses, reward_fn):
    out = torch.empty(responses.shape[0], responses.shape[1])
    for prompt, trials, row in zip(prompts, responses, out):
        for j, trial in enumerate(trials):
            row[j].fill_(reward_fn(prompt.tolist(), trial.tolist()))
    return out


def compute_deltas(rewards, mode):
    kind = Delta(mode)
    if kind is Delta.RAW:
        return rewards.clone()
    if kind is Delta.BEST:
        best = rewards.max(dim=1).values
        return rewards.where(rewards == best[:, None], torch.zeros_like(rewards))
    advantage = rewards - rewards.mean(dim=1)[:, None]
    if kind is Delta.CENTERED:
        return advantage
    if rewards.shape[1] < 2:
        raise ValueError("one response has no spread to divide by")
    return advantage / (rewards.std(dim=1)[:, None] + 1e-5)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts).unsqueeze(1).expand(-1, responses.shape[1], -1, -1)
    return F.log_softmax(logits, dim=3).gather(3, responses[..., None])[..., 0]


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    kind = Loss(mode)
    if kind.is_ratio and old_log_probs is None:
        raise ValueError(f"{kind.value} compares two policies; old_log_probs is missing")
    advantage = deltas.detach()[:, :, None]
    if kind is Loss.NAIVE:
        return (log_probs * -advantage).mean()
    ratio = (log_probs - old_log_probs.detach()).exp()
    loss = ratio * -advantage
    if kind is Loss.CLIPPED:
        loss = torch.maximum(loss, ratio.clip(1 - epsilon, 1 + epsilon) * -advantage)
    return loss.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return (x.exp() - 1 - x).sum(dim=2).mean(dim=1).mean()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS, *, num_epochs=100, num_steps_per_epoch=10, compute_ref_model_period=10,
    num_responses=10, deltas_mode="rewards", loss_mode="naive", kl_penalty=0.0, epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward, learning_rate=1e-3, seed=5, progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    length = prompts.size(1)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, length, length)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0.0 and epoch % compute_ref_model_period == 0:
            reference = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if Loss(loss_mode).is_ratio else None
            ref = compute_log_probs(prompts, responses, reference) if kl_penalty != 0.0 else None

        def closure():
            optimizer.zero_grad()
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            loss.backward()
            return loss

        for i in range(num_steps_per_epoch):
            loss = optimizer.step(closure)
            records.append(Record(epoch, epoch * num_steps_per_epoch + i, loss.item(), rewards.mean().item()))
    return PolicyGradientRun(model, records)

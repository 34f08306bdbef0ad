"""The reference is a second Model, filled from a saved state; a forked generator keeps its making from the sampling."""

import io

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


class Checkpoint:
    """Saves a model to memory and brings it back as a new one."""

    def __init__(self, build):
        self.build = build
        self.buffer = io.BytesIO()

    def save(self, model):
        self.buffer.seek(0)
        self.buffer.truncate()
        torch.save(model.state_dict(), self.buffer)

    def load(self):
        self.buffer.seek(0)
        with torch.random.fork_rng(devices=[]):
            model = self.build()
        model.load_state_dict(torch.load(self.buffer, weights_only=True))
        return model


def compute_reward(prompts, responses, reward_fn):
    return torch.stack(
        [
            torch.as_tensor([reward_fn(prompt.tolist(), response.tolist()) for response in group], dtype=torch.float)
            for prompt, group in zip(prompts, responses)
        ]
    )


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    if mode.endswith("_rewards"):
        prefix = mode.removesuffix("_rewards")
        if prefix == "max":
            best = rewards.max(dim=-1, keepdim=True).values.expand_as(rewards)
            return torch.where(rewards.eq(best), rewards, torch.zeros_like(best))
        centered = rewards - rewards.mean(dim=-1, keepdim=True).expand_as(rewards)
        if prefix == "centered":
            return centered
        if prefix == "normalized":
            if rewards.shape[-1] < 2:
                raise ValueError("normalized_rewards: too few responses")
            return centered / (rewards.std(dim=-1, keepdim=True).expand_as(rewards) + 1e-5)
    raise ValueError(f"unrecognised mode: {mode}")


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    flat = logits.repeat_interleave(responses.shape[1], dim=0).reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, responses.reshape(-1), reduction="none").neg().reshape(responses.shape)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"unrecognised mode: {mode}")
    advantage = deltas.detach().unsqueeze(-1).expand_as(log_probs)
    if mode == "naive":
        return -torch.mean(advantage * log_probs)
    if old_log_probs is None:
        raise ValueError("old_log_probs are required for importance sampling")
    importance = torch.exp(log_probs - old_log_probs.detach())
    if mode == "unclipped":
        return -torch.mean(advantage * importance)
    clipped = torch.clamp(importance, 1 - epsilon, 1 + epsilon)
    return -torch.mean(torch.min(torch.stack([advantage * importance, advantage * clipped]), dim=0).values)


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return torch.einsum("btp->bt", log_ratio.exp() - 1 - log_ratio).mean()


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
    vocab_size, length = int(prompts.max()) + 1, prompts.shape[1]
    model = Model(vocab_size, EMBEDDING_DIM, length, length)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    checkpoint = Checkpoint(lambda: Model(vocab_size, EMBEDDING_DIM, length, length))
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            checkpoint.save(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, checkpoint.load()) if kl_penalty != 0 else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

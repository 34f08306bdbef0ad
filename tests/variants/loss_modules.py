"""Everything is an nn.Module: the loss, the penalty, the scoring of responses, even the deltas."""

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
from torch import nn


class Scores(nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.cross_entropy = nn.CrossEntropyLoss(reduction="none")

    def forward(self, prompts, responses):
        logits = self.policy(prompts)  # batch pos vocab
        batch, trial, pos = responses.shape
        logits = logits.unsqueeze(1).repeat(1, trial, 1, 1).view(batch * trial * pos, -1)
        return -self.cross_entropy(logits, responses.reshape(-1)).view(batch, trial, pos)


class Center(nn.Module):
    def forward(self, rewards):
        return rewards - rewards.mean(dim=-1, keepdim=True)


class Normalize(nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.center = Center()
        self.eps = eps

    def forward(self, rewards):
        if rewards.shape[-1] < 2:
            raise ValueError("Normalize needs a group of two or more")
        return self.center(rewards) / (rewards.std(dim=-1, keepdim=True) + self.eps)


class KeepBest(nn.Module):
    def forward(self, rewards):
        return torch.where(rewards == rewards.amax(dim=-1, keepdim=True), rewards, torch.zeros_like(rewards))


class Ratio(nn.Module):
    def forward(self, new, old):
        return torch.exp(new - old.detach())


class PolicyLoss(nn.Module):
    def __init__(self, mode, epsilon):
        super().__init__()
        self.mode = mode
        self.ratio = Ratio()
        self.clip = nn.Hardtanh(1 - epsilon, 1 + epsilon)

    def forward(self, log_probs, deltas, old_log_probs):
        deltas = deltas.detach().unsqueeze(-1)
        if self.mode == "naive":
            return -(log_probs * deltas).mean()
        if old_log_probs is None:
            raise ValueError(f"PolicyLoss in mode {self.mode} needs old_log_probs")
        ratio = self.ratio(log_probs, old_log_probs)
        if self.mode == "unclipped":
            return -(ratio * deltas).mean()
        return -torch.minimum(ratio * deltas, self.clip(ratio) * deltas).mean()


class KLPenalty(nn.Module):
    def forward(self, log_probs, ref_log_probs):
        x = ref_log_probs.detach() - log_probs
        return (x.exp() - x - 1).sum(dim=-1).mean()


class Objective(nn.Module):
    def __init__(self, mode, epsilon, beta):
        super().__init__()
        self.mode, self.epsilon = mode, epsilon
        self.register_buffer("beta", torch.tensor(beta, dtype=torch.float64))

    def forward(self, log_probs, deltas, old, ref):
        loss = compute_loss(log_probs, deltas, self.mode, old_log_probs=old, epsilon=self.epsilon)
        if ref is not None:
            loss = loss + self.beta.item() * compute_kl_penalty(log_probs, ref)
        return loss


DELTAS = nn.ModuleDict(
    {
        "rewards": nn.Identity(),
        "centered_rewards": Center(),
        "normalized_rewards": Normalize(),
        "max_rewards": KeepBest(),
    }
)


def compute_reward(prompts, responses, reward_fn):
    groups = zip(prompts.unbind(), responses.unbind())
    return torch.tensor(
        [[reward_fn(p.tolist(), r.tolist()) for r in rs.unbind()] for p, rs in groups], dtype=torch.float32
    )


def compute_deltas(rewards, mode):
    if mode not in DELTAS:
        raise ValueError(f"no module is named {mode}")
    return DELTAS[mode](rewards)


def compute_log_probs(prompts, responses, model):
    return Scores(model)(prompts, responses)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"no loss is named {mode}")
    return PolicyLoss(mode, epsilon)(log_probs, deltas, old_log_probs)


def compute_kl_penalty(log_probs, ref_log_probs):
    return KLPenalty()(log_probs, ref_log_probs)


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
    models = nn.ModuleDict({"policy": model})
    objective = Objective(loss_mode, epsilon, kl_penalty)
    optimizer = torch.optim.Adam(models["policy"].parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            models["reference"] = copy.deepcopy(model).requires_grad_(False)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, models["reference"]) if "reference" in models else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            loss = objective(compute_log_probs(prompts, responses, model), deltas, old, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            models.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(models["policy"], records)

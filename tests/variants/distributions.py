"""Policies as distributions: OneHotCategorical made Independent; the ratio as a log_prob difference of two of them."""

import copy

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
from torch import distributions as D


class Policy:
    """What a model thinks of the tokens of every position, with a trial axis that broadcasts."""

    def __init__(self, prompts, model):
        self.logits = model(prompts).unsqueeze(1)
        self.tokens = D.OneHotCategorical(logits=self.logits, validate_args=False)

    def log_prob(self, responses):
        encoded = F.one_hot(responses, self.logits.shape[-1]).type_as(self.logits)
        return self.tokens.log_prob(encoded)


class Rewards:
    """The rewards of each group as an empirical distribution."""

    def __init__(self, values):
        self.values = values
        self.size = values.shape[-1]

    @property
    def mean(self):
        return self.values.mean(-1, keepdim=True)

    @property
    def stddev(self):
        if self.size < 2:
            raise ValueError("an empirical distribution of one value has no standard deviation")
        return self.values.var(-1, keepdim=True).sqrt()

    @property
    def mode(self):
        return self.values.sort(-1).values[..., -1:]


def compute_reward(prompts, responses, reward_fn):
    return torch.stack(
        [
            torch.cat([torch.tensor([float(reward_fn(x.tolist(), y.tolist()))]) for y in ys])
            for x, ys in zip(prompts, responses)
        ]
    )


def compute_deltas(rewards, mode):
    group = Rewards(rewards)
    if mode == "rewards":
        return group.values
    if mode == "centered_rewards":
        return group.values - group.mean
    if mode == "normalized_rewards":
        return (group.values - group.mean) / (group.stddev + 1e-5)
    if mode == "max_rewards":
        return group.values * (group.values == group.mode)
    raise ValueError(f"{mode!r}: unknown")


def compute_log_probs(prompts, responses, model):
    return Policy(prompts, model).log_prob(responses)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    weights = deltas.detach()[:, :, None]
    if mode == "naive":
        return -(weights * log_probs).mean()
    if mode not in ("unclipped", "clipped"):
        raise ValueError(f"{mode!r}: unknown")
    if old_log_probs is None:
        raise ValueError("importance sampling needs the behaviour policy: old_log_probs")
    to_ratio = D.transforms.ExpTransform()
    importance = to_ratio(log_probs - old_log_probs.detach())
    objective = weights * importance
    if mode == "clipped":
        objective = torch.minimum(objective, weights * importance.clamp(1 - epsilon, 1 + epsilon))
    return -objective.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return (log_ratio.exp() - 1 - log_ratio).sum(-1).mean()


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
    length = prompts.shape[1]
    policy = Model(int(prompts.max()) + 1, EMBEDDING_DIM, length, length)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate)
    records = []
    policies = {"target": policy, "behaviour": policy, "reference": None}
    wanted = [name for name, on in (("behaviour", loss_mode != "naive"), ("reference", kl_penalty != 0)) if on]
    for epoch in progress_bar(range(num_epochs), progress):
        if "reference" in wanted and epoch % compute_ref_model_period == 0:
            policies["reference"] = copy.deepcopy(policy)
        responses = generate_responses(prompts, policy, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            frozen = {name: compute_log_probs(prompts, responses, policies[name]) for name in wanted}
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, policies["target"])
            loss = compute_loss(log_probs, deltas, loss_mode, frozen.get("behaviour"), epsilon)
            if "reference" in frozen:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, frozen["reference"])
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(policy, records)

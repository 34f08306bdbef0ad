"""As few lines as will do: conditional expressions, assignment expressions, comprehensions."""

from copy import deepcopy

import torch
from sorting_task import *


def compute_reward(prompts, responses, reward_fn):
    return torch.tensor([[float(reward_fn([*p], r)) for r in g] for p, g in zip(prompts.tolist(), responses.tolist())])


def compute_deltas(rewards, mode):
    if mode not in "rewards centered_rewards normalized_rewards max_rewards".split() or (
        mode[0] == "n" and rewards.shape[1] < 2
    ):
        raise ValueError(f"{mode} with {rewards.shape[1]} responses")
    c = rewards - rewards.mean(1, True)
    return (
        rewards if mode[0] == "r"
        else c if mode[0] == "c"
        else c / (rewards.std(1, keepdim=True) + 1e-5) if mode[0] == "n"
        else rewards * (rewards == rewards.amax(1, True))
    )


def compute_log_probs(prompts, responses, model):
    return model(prompts).log_softmax(-1).gather(2, responses.mT).mT


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped") or (mode != "naive" and old_log_probs is None):
        raise ValueError(f"{mode} with old_log_probs {old_log_probs is not None}")
    d, x = deltas.detach()[..., None], log_probs if mode == "naive" else (log_probs - old_log_probs.detach()).exp()
    return -(d * x if mode != "clipped" else torch.min(d * x, d * x.clamp(1 - epsilon, 1 + epsilon))).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    return ((x := ref_log_probs.detach() - log_probs).exp() - x - 1).sum(-1).mean()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS, *, num_epochs=100, num_steps_per_epoch=10, compute_ref_model_period=10, num_responses=10,
    deltas_mode="rewards", loss_mode="naive", kl_penalty=0.0, epsilon=0.2, reward_fn=sort_inclusion_ordering_reward,
    learning_rate=1e-3, seed=5, progress=True,
):
    torch.manual_seed(seed)
    p, records = torch.tensor(prompts), []
    model = Model(int(p.max()) + 1, EMBEDDING_DIM, n := p.shape[1], n)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    for epoch in progress_bar(range(num_epochs), progress):
        reference = deepcopy(model) if kl_penalty and not epoch % compute_ref_model_period else epoch and reference
        a = generate_responses(p, model, num_responses)
        d = compute_deltas(r := compute_reward(p, a, reward_fn), deltas_mode)
        with torch.no_grad():
            old, ref = (f and compute_log_probs(p, a, f) for f in (None if loss_mode == "naive" else model, reference))
        for step in range(epoch * num_steps_per_epoch, (epoch + 1) * num_steps_per_epoch):
            loss = compute_loss(l := compute_log_probs(p, a, model), d, loss_mode, old, epsilon)
            loss = loss + kl_penalty * compute_kl_penalty(l, ref) if kl_penalty else loss
            records += (Record(epoch, step, loss.item(), r.mean().item()),)
            optimizer.zero_grad(), loss.backward(), optimizer.step()
    return PolicyGradientRun(model, records)

"""Pasted together from notebook cells: matplotlib and tqdm at the top, a device, shape checks, a trial at the end."""

# %%
import copy
import random

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sorting_task import *
from sorting_task import save_run
from tqdm import tqdm

# %%
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
plt.rcParams["figure.figsize"] = (8, 3)
random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


# %%
def compute_reward(prompts, responses, reward_fn):
    assert prompts.ndim == 2 and responses.ndim == 3, (prompts.shape, responses.shape)
    rewards = []
    for b in range(prompts.shape[0]):
        prompt = prompts[b].cpu().numpy()
        rewards_b = []
        for t in range(responses.shape[1]):
            rewards_b.append(reward_fn(prompt.tolist(), responses[b, t].cpu().numpy().tolist()))
        rewards.append(rewards_b)
    rewards = torch.tensor(rewards, dtype=torch.float32, device=device)
    assert rewards.shape == responses.shape[:2]
    return rewards


# %%
def compute_deltas(rewards, mode):
    if mode == "rewards":
        deltas = rewards
    elif mode == "centered_rewards":
        baseline = rewards.mean(dim=1, keepdim=True)
        deltas = rewards - baseline
    elif mode == "normalized_rewards":
        if rewards.shape[1] < 2:
            raise ValueError("GRPO needs a group")
        baseline = rewards.mean(dim=1, keepdim=True)
        deltas = (rewards - baseline) / (rewards.std(dim=1, keepdim=True) + 1e-5)
    elif mode == "max_rewards":
        best, _ = rewards.max(dim=1, keepdim=True)
        deltas = torch.where(rewards == best, rewards, torch.zeros_like(rewards))
    else:
        raise ValueError(f"Unknown mode: {mode}")
    assert deltas.shape == rewards.shape
    return deltas


# %%
def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    log_probs = F.log_softmax(logits, dim=-1)
    num_trials = responses.shape[1]
    log_probs = log_probs.unsqueeze(1).repeat(1, num_trials, 1, 1)
    out = torch.gather(log_probs, dim=-1, index=responses.unsqueeze(-1)).squeeze(-1)
    assert out.shape == responses.shape
    return out


# %%
def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    B, T, P = log_probs.shape
    d = deltas.detach().unsqueeze(-1).expand(B, T, P)
    if mode == "naive":
        loss = -(d * log_probs).mean()
    elif mode == "unclipped":
        if old_log_probs is None:
            raise ValueError("old_log_probs required")
        loss = -(d * torch.exp(log_probs - old_log_probs.detach())).mean()
    elif mode == "clipped":
        if old_log_probs is None:
            raise ValueError("old_log_probs required")
        ratios = torch.exp(log_probs - old_log_probs.detach())
        unclipped = d * ratios
        clipped = d * ratios.clamp(1 - epsilon, 1 + epsilon)
        loss = -torch.min(unclipped, clipped).mean()
    else:
        raise ValueError(f"Unknown mode: {mode}")
    assert loss.shape == ()
    return loss


# %%
def compute_kl_penalty(log_probs, ref_log_probs):
    diff = ref_log_probs.detach() - log_probs
    kl = (diff.exp() - diff - 1).sum(dim=-1).mean()
    return kl


# %%
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
    prompts = torch.tensor(prompts, device=device)
    vocab_size = prompts.max().item() + 1
    prompt_length = response_length = prompts.shape[1]
    model = Model(vocab_size, EMBEDDING_DIM, prompt_length, response_length).to(device)
    model.train()
    optimizer = optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    ref_model = None
    pbar = tqdm(range(num_epochs), disable=not progress)
    for epoch in pbar:
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model).to(device)
            ref_model.eval()
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            if kl_penalty != 0:
                ref_log_probs = compute_log_probs(prompts, responses, ref_model)
            if loss_mode != "naive":
                old_log_probs = compute_log_probs(prompts, responses, model)
            else:
                old_log_probs = None
        for step in range(num_steps_per_epoch):
            optimizer.zero_grad()
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=old_log_probs, epsilon=epsilon)
            if kl_penalty != 0:
                loss += kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            loss.backward()
            optimizer.step()
            records.append(
                Record(
                    epoch=epoch,
                    step=epoch * num_steps_per_epoch + step,
                    loss=loss.detach().cpu().item(),
                    mean_reward=rewards.mean().cpu().item(),
                )
            )
            pbar.set_postfix(loss=loss.item(), reward=rewards.mean().item())
    return PolicyGradientRun(model, records)


# %%
compute_deltas(torch.tensor([[1.0, 2.0, 3.0], [3.0, 3.0, 3.0]]), "normalized_rewards")
_ = plt.figure()
plt.close("all")

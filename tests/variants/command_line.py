#!/usr/bin/env python3
# -*- coding: utf-8 -*-
"""A script with its own command line: argparse, global seeds and deterministic algorithms at import, a main block."""

import argparse
import copy
import os
import random
import sys

import torch
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    generate_responses,
    progress_bar,
    save_run,
    sort_inclusion_ordering_reward,
)

__author__ = "A. Student"
__all__ = [
    "compute_reward",
    "compute_deltas",
    "compute_log_probs",
    "compute_loss",
    "compute_kl_penalty",
    "run_policy_gradient",
]

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.set_printoptions(precision=3, sci_mode=False)
random.seed(1234)
torch.manual_seed(1234)

if sys.version_info < (3, 10):
    raise RuntimeError("needs a newer Python")


def compute_reward(prompts, responses, reward_fn):
    """See the handout."""
    result = []
    for i in range(len(prompts)):
        row = []
        for response in responses[i]:
            row.append(float(reward_fn(prompts[i].tolist(), response.tolist())))
        result.append(row)
    return torch.tensor(result, dtype=torch.float32, requires_grad=False)


def compute_deltas(rewards, mode):
    """See the handout."""
    if mode in ("centered_rewards", "normalized_rewards"):
        deltas = rewards - torch.mean(rewards, -1).unsqueeze(-1)
        if mode == "normalized_rewards":
            if rewards.shape[-1] < 2:
                raise ValueError(f"{rewards.shape[-1]} response(s), need 2")
            deltas = deltas / (torch.std(rewards, -1).unsqueeze(-1) + 1e-5)
    elif mode == "rewards":
        deltas = rewards
    elif mode == "max_rewards":
        deltas = torch.stack([torch.where(row == row.max(), row, torch.zeros_like(row)) for row in rewards])
    else:
        raise ValueError(f"--deltas-mode {mode}: no such choice")
    return deltas


def compute_log_probs(prompts, responses, model):
    """See the handout."""
    log_probs = torch.log_softmax(model(prompts), dim=2)
    log_probs = log_probs.unsqueeze(1).expand(-1, responses.size(1), -1, -1)
    return torch.gather(log_probs, 3, responses.unsqueeze(3)).squeeze(3)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    """See the handout."""
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"--loss-mode {mode}: no such choice")
    if mode in ("unclipped", "clipped") and old_log_probs is None:
        raise ValueError(f"--loss-mode {mode}: old_log_probs missing")
    deltas = deltas.detach().unsqueeze(2)
    x = log_probs if mode == "naive" else torch.exp(log_probs - old_log_probs.detach())
    y = x.clamp(1 - epsilon, 1 + epsilon) if mode == "clipped" else x
    return -torch.minimum(x * deltas, y * deltas).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    """See the handout."""
    x = ref_log_probs.detach() - log_probs
    return torch.sum(torch.exp(x) - x - 1, dim=(1, 2)).mean() / x.size(1)


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
    """See the handout."""
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.size(1), prompts.size(1))
    optimizer = torch.optim.Adam([{"params": list(model.parameters()), "lr": learning_rate}])
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        ref_log_probs = old_log_probs = None
        with torch.no_grad():
            if loss_mode != "naive":
                old_log_probs = compute_log_probs(prompts, responses, model)
            if kl_penalty != 0:
                ref_log_probs = compute_log_probs(prompts, responses, ref_model)
        for i in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            print(f"\repoch {epoch} step {i} loss {loss.item():.4f}", end="", file=sys.stderr, flush=True)
            records.append(Record(epoch, epoch * num_steps_per_epoch + i, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--deltas-mode", default="rewards")
    parser.add_argument("--loss-mode", default="naive")
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    run = run_policy_gradient(deltas_mode=args.deltas_mode, loss_mode=args.loss_mode)
    print(save_run(run, args.out))


if __name__ == "__main__":
    main()

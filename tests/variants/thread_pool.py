"""Rewards by a pool of threads, log messages, context managers chosen at run time."""

import contextlib
import copy
import logging
import time
from concurrent.futures import ThreadPoolExecutor

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

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger(__name__)
logging.getLogger("matplotlib").setLevel(logging.WARNING)


def compute_reward(prompts, responses, reward_fn):
    batch, trial = responses.shape[0], responses.shape[1]
    left = [prompt.tolist() for prompt in prompts for _ in range(trial)]
    right = [response.tolist() for group in responses for response in group]
    with ThreadPoolExecutor(max_workers=4) as pool:
        rewards = list(pool.map(reward_fn, left, right))
    log.debug("%d rewards", len(rewards))
    return torch.tensor(rewards, dtype=torch.float32).view(batch, trial)


def compute_deltas(rewards, mode):
    log.debug("deltas of shape %s in mode %s", tuple(rewards.shape), mode)
    if mode == "max_rewards":
        is_max = rewards == rewards.max(-1, keepdim=True)[0]
        return torch.where(is_max, rewards, rewards.new_zeros(1))
    if mode in ("rewards", "centered_rewards", "normalized_rewards"):
        deltas = rewards.clone()
        if mode != "rewards":
            deltas -= rewards.mean(-1, keepdim=True)
        if mode == "normalized_rewards":
            if deltas.size(-1) <= 1:
                log.error("only one response")
                raise ValueError("normalized_rewards needs more than one response for each prompt")
            deltas /= rewards.std(-1, keepdim=True) + 1e-5
        return deltas
    log.error("mode %s", mode)
    raise ValueError(f"invalid deltas mode: {mode}")


def compute_log_probs(prompts, responses, model):
    started = time.perf_counter()
    log_probs = torch.nn.functional.log_softmax(model(prompts), dim=-1)
    index = responses[:, :, :, None]
    log_probs = log_probs[:, None].expand(*responses.shape, log_probs.shape[-1]).gather(3, index)[:, :, :, 0]
    log.debug("log-probs in %.4f s", time.perf_counter() - started)
    return log_probs


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    per_token = deltas.detach()[:, :, None].expand(log_probs.shape)
    if mode == "naive":
        return -(per_token * log_probs).mean()
    if mode not in ["unclipped", "clipped"]:
        raise ValueError(f"invalid loss mode: {mode}")
    if old_log_probs is None:
        raise ValueError("old_log_probs must be given for the ratio")
    ratio = (log_probs - old_log_probs.detach()).exp()
    fraction_clipped = ((ratio.detach() - 1).abs() > epsilon).float().mean().item()
    log.info("fraction clipped %.3f", fraction_clipped)
    if mode == "unclipped":
        return -(per_token * ratio).mean()
    return -torch.min(per_token * ratio, per_token * torch.clamp(ratio, 1.0 - epsilon, 1.0 + epsilon)).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return (torch.exp(log_ratio) - log_ratio - 1.0).sum(-1).mean()


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
    log.info("training with %s", {name: value for name, value in locals().items() if name != "reward_fn"})
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []

    def scored(policy, constant):
        with torch.no_grad() if constant else contextlib.nullcontext():
            return compute_log_probs(prompts, responses, policy)

    with contextlib.ExitStack() as stack:
        stack.callback(log.info, "done")
        for epoch in progress_bar(range(num_epochs), progress):
            if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
                log.info("epoch %d: new reference", epoch)
                ref_model = copy.deepcopy(model)
            responses = generate_responses(prompts, model, num_responses)
            rewards = compute_reward(prompts, responses, reward_fn)
            deltas = compute_deltas(rewards, deltas_mode)
            ref = scored(ref_model, constant=True) if kl_penalty != 0 else None
            old = scored(model, constant=True) if loss_mode != "naive" else None
            for inner in range(num_steps_per_epoch):
                log_probs = scored(model, constant=False)
                loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
                if kl_penalty != 0:
                    loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
                record = Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item())
                log.debug("%s", record)
                records.append(record)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return PolicyGradientRun(model, records)

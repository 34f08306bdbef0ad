"""The standard library for whatever needs no gradient: statistics, math, operator; a record counter from itertools."""

import copy
import itertools
import math
import operator
import statistics

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
from torch import log_softmax, minimum, no_grad, tensor


def compute_reward(prompts, responses, reward_fn):
    trials = responses.shape[1]
    pairs = zip(
        itertools.chain.from_iterable(itertools.repeat(prompt, trials) for prompt in prompts),
        itertools.chain.from_iterable(responses),
    )
    scores = itertools.starmap(lambda prompt, response: reward_fn(prompt.tolist(), response.tolist()), pairs)
    return tensor(list(map(float, scores))).float().reshape(-1, trials)


def standardise(row):
    if len(row) < 2:
        raise ValueError("statistics.stdev requires at least two responses")
    mean, spread = statistics.fmean(row), statistics.stdev(row)
    return [(value - mean) / (spread + 1e-5) for value in row]


def centre(row):
    mean = math.fsum(row) / len(row)
    return [value - mean for value in row]


def keep_best(row):
    return [value if value == max(row) else 0.0 for value in row]


RULES = {
    "rewards": list,
    "centered_rewards": centre,
    "normalized_rewards": standardise,
    "max_rewards": keep_best,
}


def compute_deltas(rewards, mode):
    if mode not in RULES:
        raise ValueError("unknown mode %r, choose from %s" % (mode, ", ".join(RULES)))
    return tensor([RULES[mode](row) for row in rewards.tolist()], dtype=rewards.dtype)


def compute_log_probs(prompts, responses, model):
    tables = log_softmax(model(prompts), -1)
    rows = []
    for table, trials in zip(tables, responses):
        positions = torch.arange(len(table)).expand_as(trials)
        rows.append(table[positions, trials])
    return torch.stack(rows)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    low, high = operator.sub(1, epsilon), operator.add(1, epsilon)
    weights = deltas.detach().unsqueeze(2)
    if mode == "naive":
        return operator.neg((weights * log_probs).mean())
    if mode in ("unclipped", "clipped"):
        if old_log_probs is None:
            raise ValueError("no old_log_probs to form the ratio with")
        ratio = (log_probs - old_log_probs.detach()).exp()
        if mode == "unclipped":
            return operator.neg((weights * ratio).mean())
        return operator.neg(minimum(weights * ratio, weights * ratio.clamp(low, high)).mean())
    raise ValueError("unknown mode %r" % mode)


def compute_kl_penalty(log_probs, ref_log_probs):
    difference = ref_log_probs.detach() - log_probs
    total = (difference.exp() - difference - 1).sum()
    return total / math.prod(log_probs.shape[:2])


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
    vocab_size = max(itertools.chain.from_iterable(prompts)) + 1
    length = len(prompts[0])
    model = Model(vocab_size, EMBEDDING_DIM, length, length)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    prompts = tensor(prompts)
    counter = itertools.count()
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and math.fmod(epoch, compute_ref_model_period) == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        mean_reward = statistics.fmean(itertools.chain.from_iterable(rewards.tolist()))
        deltas = compute_deltas(rewards, deltas_mode)
        old = ref = None
        if kl_penalty != 0:
            with no_grad():
                ref = compute_log_probs(prompts, responses, ref_model)
        if loss_mode != "naive":
            with no_grad():
                old = compute_log_probs(prompts, responses, model)
        for step in itertools.islice(counter, num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            terms = [compute_loss(log_probs, deltas, loss_mode, old, epsilon)]
            if kl_penalty != 0:
                terms.append(kl_penalty * compute_kl_penalty(log_probs, ref))
            loss = sum(terms)
            records.append(Record(epoch, step, float(loss), mean_reward))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

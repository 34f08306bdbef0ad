"""torch.distributions for the policy, dictionaries of functions for the modes, a second Model as the reference."""

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
from torch.distributions import Categorical


def compute_reward(prompts, responses, reward_fn):
    rows = []
    for prompt, group in zip(prompts.tolist(), responses.tolist()):
        rows.append([reward_fn(list(prompt), response) for response in group])
    return torch.tensor(rows, dtype=torch.float)


def _centered(rewards):
    return rewards - torch.mean(rewards, dim=1, keepdim=True)


def _normalized(rewards):
    if rewards.shape[1] == 1:
        raise ValueError("the standard deviation of one number is not defined")
    return _centered(rewards) / (torch.std(rewards, dim=1, keepdim=True) + 1e-5)


def _winners(rewards):
    best, _ = torch.max(rewards, dim=1, keepdim=True)
    return torch.where(rewards == best, rewards, 0.0)


DELTAS = {
    "rewards": torch.clone,
    "centered_rewards": _centered,
    "normalized_rewards": _normalized,
    "max_rewards": _winners,
}


def compute_deltas(rewards, mode):
    try:
        function = DELTAS[mode]
    except KeyError:
        raise ValueError(f"mode must be one of {sorted(DELTAS)}, not {mode!r}") from None
    return function(rewards)


def compute_log_probs(prompts, responses, model):
    policy = Categorical(logits=model(prompts).unsqueeze(1))
    return policy.log_prob(responses)


def _unclipped(ratio, deltas, epsilon):
    return ratio * deltas


def _clipped(ratio, deltas, epsilon):
    return torch.minimum(ratio * deltas, ratio.clamp(1 - epsilon, 1 + epsilon) * deltas)


SURROGATES = {"unclipped": _unclipped, "clipped": _clipped}


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    with torch.no_grad():
        deltas = deltas.unsqueeze(-1).expand_as(log_probs).clone()
    if mode == "naive":
        return -torch.mean(log_probs * deltas)
    if mode not in SURROGATES:
        raise ValueError(f"mode must be naive, unclipped or clipped, not {mode!r}")
    if old_log_probs is None:
        raise ValueError(f"mode {mode!r} compares with old_log_probs")
    ratio = torch.exp(log_probs - old_log_probs.detach())
    return -torch.mean(SURROGATES[mode](ratio, deltas, epsilon))


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = log_probs - ref_log_probs.detach()
    k3 = torch.exp(-log_ratio) - 1 + log_ratio
    return k3.sum(dim=2).mean()


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
    prompts = torch.as_tensor(prompts)
    sizes = dict(
        vocab_size=int(prompts.max()) + 1,
        embedding_dim=EMBEDDING_DIM,
        prompt_length=prompts.shape[1],
        response_length=prompts.shape[1],
    )
    model = Model(**sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            state = torch.get_rng_state()
            reference = Model(**sizes).to(next(model.parameters()).dtype)
            torch.set_rng_state(state)  # building a model draws random numbers; sampling must not notice
            reference.load_state_dict(model.state_dict())
            reference.eval()
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        constants = {}
        with torch.no_grad():
            if kl_penalty != 0:
                constants["ref"] = compute_log_probs(prompts, responses, reference)
            if loss_mode in SURROGATES:
                constants["old"] = compute_log_probs(prompts, responses, model)
        for inner_step in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=constants.get("old"), epsilon=epsilon)
            if "ref" in constants:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, constants["ref"])
            records.append(
                Record(
                    epoch=epoch,
                    step=epoch * num_steps_per_epoch + inner_step,
                    loss=loss.item(),
                    mean_reward=rewards.mean().item(),
                )
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model=model, records=records)

"""Nothing is imported before it is needed; defaults that are not plain numbers are filled in inside."""


def compute_reward(prompts, responses, reward_fn):
    from torch import tensor

    return tensor([[float(reward_fn(p.tolist(), r.tolist())) for r in rs] for p, rs in zip(prompts, responses)])


def compute_deltas(rewards, mode):
    import torch

    if mode == "rewards":
        return rewards
    if mode == "centered_rewards":
        return rewards - rewards.mean(-1, keepdim=True)
    if mode == "max_rewards":
        return torch.where(rewards == rewards.max(-1, keepdim=True).values, rewards, torch.zeros_like(rewards))
    if mode == "normalized_rewards":
        if rewards.shape[-1] == 1:
            raise ValueError("Bessel's correction divides by 0 here")
        return compute_deltas(rewards, "centered_rewards") / (rewards.std(-1, keepdim=True) + 1e-5)
    raise ValueError(f"unknown {mode=}")


def compute_log_probs(prompts, responses, model):
    from torch.nn.functional import log_softmax

    batch, trial, pos = responses.shape
    log_probs = log_softmax(model(prompts), dim=-1).view(batch, 1, pos, -1).expand(-1, trial, -1, -1)
    return log_probs.gather(-1, responses.view(batch, trial, pos, 1)).squeeze(-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    import torch

    delta = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return -(delta * log_probs).mean()
    if mode in ("unclipped", "clipped") and old_log_probs is not None:
        ratio = (log_probs - old_log_probs.detach()).exp()
        if mode == "unclipped":
            return -(delta * ratio).mean()
        return -torch.minimum(delta * ratio, delta * ratio.clamp(1 - epsilon, 1 + epsilon)).mean()
    raise ValueError(f"{mode=} with {old_log_probs=}")


def compute_kl_penalty(log_probs, ref_log_probs):
    from torch import exp

    x = ref_log_probs.detach() - log_probs
    return (exp(x) - x - 1).sum(-1).mean()


def run_policy_gradient(
    prompts=None,
    *,
    num_epochs=100,
    num_steps_per_epoch=10,
    compute_ref_model_period=10,
    num_responses=10,
    deltas_mode="rewards",
    loss_mode="naive",
    kl_penalty=0.0,
    epsilon=0.2,
    reward_fn=None,
    learning_rate=1e-3,
    seed=5,
    progress=True,
):
    from copy import deepcopy

    import sorting_task
    from sorting_task import EMBEDDING_DIM, Model, PolicyGradientRun, Record, generate_responses, progress_bar
    from torch import manual_seed, no_grad, tensor
    from torch.optim import Adam

    prompts = sorting_task.DEFAULT_PROMPTS if prompts is None else prompts
    reward_fn = sorting_task.sort_inclusion_ordering_reward if reward_fn is None else reward_fn
    manual_seed(seed)
    prompts = tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with no_grad():
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)

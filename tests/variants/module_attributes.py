"""import sorting_task and torch, and nothing from them: every name with its module in front; fused Adam."""

import copy
import math

import sorting_task
import torch
import torch.nn
import torch.nn.functional
import torch.optim


def compute_reward(
    prompts: "torch.Tensor", responses: "torch.Tensor", reward_fn: "sorting_task.Reward"
) -> "torch.Tensor":
    rewards = torch.zeros(responses.shape[0] * responses.shape[1])
    for index in range(rewards.numel()):
        row, column = index // responses.shape[1], index % responses.shape[1]
        rewards.index_fill_(0, torch.tensor(index), reward_fn(prompts[row].tolist(), responses[row, column].tolist()))
    return rewards.reshape(responses.shape[0], responses.shape[1])


def compute_deltas(rewards: "torch.Tensor", mode: str) -> "torch.Tensor":
    if mode == "rewards":
        return torch.clone(rewards)
    elif mode == "max_rewards":
        return torch.mul(rewards, torch.eq(rewards, torch.amax(rewards, dim=1, keepdim=True)))
    elif mode == "centered_rewards":
        return torch.sub(rewards, torch.mean(rewards, dim=1, keepdim=True))
    elif mode == "normalized_rewards":
        if torch.Tensor.size(rewards, 1) < 2:
            raise ValueError("normalized_rewards: torch.std of one element")
        return torch.div(
            torch.sub(rewards, torch.mean(rewards, dim=1, keepdim=True)),
            torch.add(torch.std(rewards, dim=1, keepdim=True), 1e-5),
        )
    raise ValueError("mode: {0!s}".format(mode))


def compute_log_probs(
    prompts: "torch.Tensor", responses: "torch.Tensor", model: "torch.nn.Module"
) -> "torch.Tensor":
    log_probs = torch.nn.functional.log_softmax(model.forward(prompts), dim=-1)
    log_probs = torch.unsqueeze(log_probs, 1)
    index = torch.unsqueeze(responses, -1)
    return torch.squeeze(torch.take_along_dim(log_probs, index, dim=-1), -1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = torch.unsqueeze(torch.detach(deltas), -1)
    if mode == "naive":
        return torch.neg(torch.mean(torch.mul(log_probs, deltas)))
    if mode != "unclipped" and mode != "clipped":
        raise ValueError("mode: {0!s}".format(mode))
    if old_log_probs is None:
        raise ValueError("mode {0!s} wants old_log_probs".format(mode))
    ratio = torch.exp(torch.sub(log_probs, torch.detach(old_log_probs)))
    objective = torch.mul(ratio, deltas)
    if mode == "clipped":
        clipped = torch.clamp(ratio, min=1 - epsilon, max=1 + epsilon)
        objective = torch.minimum(objective, torch.mul(clipped, deltas))
    return torch.neg(torch.mean(objective))


def compute_kl_penalty(log_probs, ref_log_probs):
    difference = torch.sub(torch.detach(ref_log_probs), log_probs)
    k3 = torch.sub(torch.special.expm1(difference), difference)
    return torch.mean(torch.sum(k3, dim=-1))


def run_policy_gradient(
    prompts=sorting_task.DEFAULT_PROMPTS,
    *,
    num_epochs=100,
    num_steps_per_epoch=10,
    compute_ref_model_period=10,
    num_responses=10,
    deltas_mode="rewards",
    loss_mode="naive",
    kl_penalty=0.0,
    epsilon=0.2,
    reward_fn=sorting_task.sort_inclusion_ordering_reward,
    learning_rate=math.pow(10, -3),
    seed=5,
    progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = sorting_task.Model(
        vocab_size=int(torch.max(prompts)) + 1,
        embedding_dim=sorting_task.EMBEDDING_DIM,
        prompt_length=prompts.shape[1],
        response_length=prompts.shape[1],
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    records = []
    for epoch in sorting_task.progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = sorting_task.generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref_log_probs = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
            old_log_probs = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        for inner_step in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if kl_penalty != 0:
                loss = torch.add(loss, torch.mul(compute_kl_penalty(log_probs, ref_log_probs), kl_penalty))
            records.append(
                sorting_task.Record(
                    epoch=epoch,
                    step=epoch * num_steps_per_epoch + inner_step,
                    loss=torch.Tensor.item(loss),
                    mean_reward=torch.Tensor.item(torch.mean(rewards)),
                )
            )
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return sorting_task.PolicyGradientRun(model=model, records=records)

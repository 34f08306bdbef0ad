"""Long-hand, as in a first programming course: counters, flags, temporary lists, globals, del, many comments."""

# imports
import copy
import torch
from sorting_task import DEFAULT_PROMPTS
from sorting_task import EMBEDDING_DIM
from sorting_task import Model
from sorting_task import PolicyGradientRun
from sorting_task import Record
from sorting_task import generate_responses
from sorting_task import progress_bar
from sorting_task import sort_inclusion_ordering_reward

counter = 0
DEBUG = False


def debug(*things):
    if DEBUG == True:
        print(*things)


def compute_reward(prompts, responses, reward_fn):
    # go through all prompts
    all_rewards = []
    prompt_index = 0
    for prompt in prompts:
        rewards_of_prompt = []
        # go through all responses to this prompt
        for response in responses[prompt_index]:
            prompt_list = []
            for token in prompt:
                prompt_list.append(token.item())
            response_list = []
            for token in response:
                response_list.append(token.item())
            reward = reward_fn(prompt_list, response_list)
            rewards_of_prompt.append(reward)
        all_rewards.append(rewards_of_prompt)
        prompt_index = prompt_index + 1
    # make a tensor of it
    result = torch.tensor(all_rewards)
    result = result.type(torch.float32)
    return result


def compute_deltas(rewards, mode):
    number_of_prompts = rewards.size()[0]
    number_of_responses = rewards.size()[1]
    # check the mode
    mode_is_ok = False
    for ok_mode in ["rewards", "centered_rewards", "normalized_rewards", "max_rewards"]:
        if mode == ok_mode:
            mode_is_ok = True
    if not mode_is_ok:
        raise ValueError("mode " + str(mode) + " is not ok")
    if mode == "normalized_rewards" and number_of_responses == 1:
        raise ValueError("can not normalize 1 response")
    # fill in the deltas one by one
    deltas = torch.zeros(number_of_prompts, number_of_responses, dtype=rewards.dtype)
    for i in range(number_of_prompts):
        # first the mean
        total = 0
        for j in range(number_of_responses):
            total = total + rewards[i, j]
        mean = total / number_of_responses
        # then the variance
        total = 0
        for j in range(number_of_responses):
            total = total + (rewards[i, j] - mean) * (rewards[i, j] - mean)
        if number_of_responses > 1:
            std = (total / (number_of_responses - 1)) ** 0.5
        # then the maximum
        maximum = rewards[i, 0]
        for j in range(1, number_of_responses):
            if rewards[i, j] > maximum:
                maximum = rewards[i, j]
        # now the deltas
        for j in range(number_of_responses):
            if mode == "rewards":
                deltas[i, j] = rewards[i, j]
            if mode == "centered_rewards":
                deltas[i, j] = rewards[i, j] - mean
            if mode == "normalized_rewards":
                deltas[i, j] = (rewards[i, j] - mean) / (std + 0.00001)
            if mode == "max_rewards":
                if rewards[i, j] == maximum:
                    deltas[i, j] = rewards[i, j]
                else:
                    deltas[i, j] = 0
    return deltas


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    log_probs = torch.nn.functional.log_softmax(logits, dim=2)
    # the result has the shape of the responses
    result = torch.zeros(responses.size(), dtype=log_probs.dtype)
    for i in range(responses.size()[0]):
        for j in range(responses.size()[1]):
            for k in range(responses.size()[2]):
                token = responses[i, j, k]
                result[i, j, k] = log_probs[i, k, token]
    return result


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if not (mode == "naive" or mode == "unclipped" or mode == "clipped"):
        raise ValueError("mode " + str(mode) + " is not ok")
    if mode == "unclipped" or mode == "clipped":
        if old_log_probs == None:
            raise ValueError("no old_log_probs")
    delta = deltas.detach()
    loss = 0
    for j in range(log_probs.size()[1]):  # every response
        for k in range(log_probs.size()[2]):  # every token
            if mode == "naive":
                summand = log_probs[:, j, k] * delta[:, j]
            else:
                ratio = torch.exp(log_probs[:, j, k] - old_log_probs[:, j, k].detach())
                first = ratio * delta[:, j]
                if mode == "unclipped":
                    summand = first
                else:
                    second = torch.clamp(ratio, 1 - epsilon, 1 + epsilon) * delta[:, j]
                    summand = torch.minimum(first, second)
            loss = loss - summand.sum()
    # divide by the number of everything
    loss = loss / (log_probs.size()[0] * log_probs.size()[1] * log_probs.size()[2])
    return loss


def compute_kl_penalty(log_probs, ref_log_probs):
    ref = ref_log_probs.detach()
    kl = 0
    for k in range(log_probs.size()[2]):
        difference = ref[:, :, k] - log_probs[:, :, k]
        kl = kl + torch.exp(difference) - difference - 1
    return kl.mean()


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
    global counter
    counter = 0
    torch.manual_seed(seed)
    # find the biggest token
    biggest = 0
    for prompt in prompts:
        for token in prompt:
            if token > biggest:
                biggest = token
    prompt_length = len(prompts[0])
    model = Model(biggest + 1, EMBEDDING_DIM, prompt_length, prompt_length)
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    prompts_tensor = torch.tensor(prompts)
    records = []
    epochs_until_new_reference = 0
    # the training
    for epoch in progress_bar(range(num_epochs), progress):
        debug("epoch", epoch)
        # maybe a new reference model
        if kl_penalty != 0:
            if epochs_until_new_reference == 0:
                ref_model = copy.deepcopy(model)
                epochs_until_new_reference = compute_ref_model_period
            epochs_until_new_reference = epochs_until_new_reference - 1
        # sample
        responses = generate_responses(prompts_tensor, model, num_responses)
        rewards = compute_reward(prompts_tensor, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        # the things that do not change
        old_log_probs = None
        ref_log_probs = None
        with torch.no_grad():
            if loss_mode != "naive":
                old_log_probs = compute_log_probs(prompts_tensor, responses, model)
            if kl_penalty != 0:
                ref_log_probs = compute_log_probs(prompts_tensor, responses, ref_model)
        # the steps
        for inner_step in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts_tensor, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if kl_penalty != 0:
                kl = compute_kl_penalty(log_probs, ref_log_probs)
                loss = loss + kl_penalty * kl
            loss_number = loss.item()
            reward_number = rewards.mean().item()
            record = Record(epoch, counter, loss_number, reward_number)
            records.append(record)
            counter = counter + 1
            # update
            adam.zero_grad()
            loss.backward()
            adam.step()
            del loss, log_probs
    # finished
    run = PolicyGradientRun(model, records)
    return run

"""Records collected at the end."""

def train(model, tokenizer, problems, *, reward_fn=sum_reward, num_steps=60, num_prompts=16, num_responses=8,
          num_inner_steps=2, max_new_tokens=MAX_NEW_TOKENS, advantage_mode='mean_std', normalization='token_mean',
          epsilon=0.2, kl_coefficient=0.0, learning_rate=2e-4, max_grad_norm=1.0, seed=0, progress=True):
    torch.manual_seed(seed)
    model.eval()
    reference = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=(0.9, 0.999), eps=1e-8)
    passed = {'advantage_mode': advantage_mode, 'normalization': normalization, 'epsilon': epsilon,
              'kl_coefficient': kl_coefficient, 'max_length': max_new_tokens, 'max_grad_norm': max_grad_norm}

    def one_step(step, chosen):
        rollout = sample_rollout(model, tokenizer, chosen, num_responses, max_new_tokens)
        rewards = score_rollout(rollout, reward_fn)
        where = rollout.input_ids, rollout.attention_mask, rollout.prompt_length
        with torch.no_grad():
            old = compute_response_log_probs(model, *where, reduction='none')
            ref = compute_response_log_probs(reference, *where, reduction='none') if kl_coefficient else None
        losses = [grpo_step(model, optimizer, rollout, rewards, old_log_probs=old, ref_log_probs=ref, **passed)
                  for _ in range(num_inner_steps)]
        mean, length = rewards.mean().item(), mean_response_length(rollout)
        return [Record(step, inner, loss, mean, length) for inner, loss in enumerate(losses)]

    batches = enumerate(problem_batches(problems, num_steps, num_prompts, seed))
    return TrainingRun(model, sum((one_step(*batch) for batch in batches), []))

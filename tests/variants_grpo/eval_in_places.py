"""A class for the loop; a frozen reference; evaluation mode around all that samples and scores."""

class Trainer:
    def __init__(self, model, tokenizer, options, learning_rate, kl):
        self.model, self.tokenizer, self.options, self.kl = model, tokenizer, options, kl
        self.optimizer = torch.optim.Adam([{'params': list(model.parameters())}], learning_rate)
        self.reference = copy.deepcopy(model).eval().requires_grad_(False) if kl else None
        self.records = []

    @torch.no_grad()
    def frozen(self, scorer, rollout):
        if scorer is None:
            return None
        return compute_response_log_probs(scorer, rollout.input_ids, rollout.attention_mask, rollout.prompt_length, 'none')

    def step(self, index, rollout, rewards, inner_steps):
        old, ref = self.frozen(self.model, rollout), self.frozen(self.reference, rollout)
        for inner in range(inner_steps):
            loss = grpo_step(self.model, self.optimizer, rollout, rewards, old_log_probs=old, ref_log_probs=ref,
                             kl_coefficient=self.kl, **self.options)
            self.records.append(Record(step=index, inner_step=inner, loss=loss, mean_reward=float(rewards.mean()),
                                       response_length=mean_response_length(rollout)))


def train(model, tokenizer, problems, *, reward_fn=sum_reward, num_steps=60, num_prompts=16, num_responses=8,
          num_inner_steps=2, max_new_tokens=24, advantage_mode='mean_std', normalization='token_mean', epsilon=0.2,
          kl_coefficient=0.0, learning_rate=2e-4, max_grad_norm=1.0, seed=0, progress=True):
    torch.manual_seed(seed)
    model.train(False)
    options = dict(advantage_mode=advantage_mode, normalization=normalization, epsilon=epsilon,
                   max_length=max_new_tokens, max_grad_norm=max_grad_norm)
    trainer = Trainer(model, tokenizer, options, learning_rate, kl_coefficient)
    index = 0
    for chosen in problem_batches(problems, num_steps, num_prompts, seed):
        rollout = sample_rollout(trainer.model, tokenizer, chosen, num_responses, max_new_tokens=max_new_tokens)
        trainer.step(index, rollout, score_rollout(rollout, reward_fn), num_inner_steps)
        index += 1
    return TrainingRun(model=model, records=trainer.records)

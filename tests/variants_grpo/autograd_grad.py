"""torch.autograd.grad in place of backward."""

def grpo_step(model, optimizer, rollout, rewards, *, old_log_probs=None, ref_log_probs=None, max_grad_norm=1.0,
              advantage_mode='mean_std', **options):
    log_probs = compute_response_log_probs(model, rollout.input_ids, rollout.attention_mask, rollout.prompt_length, 'none')
    loss = grpo_loss(log_probs, old_log_probs if old_log_probs is not None else log_probs.data,
                     group_advantages(rewards, advantage_mode).view(-1), rollout.attention_mask[:, rollout.prompt_length:],
                     ref_log_probs=ref_log_probs, **options)
    parameters = list(model.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
        parameter.grad = gradient
    torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach().item()

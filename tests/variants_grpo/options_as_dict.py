"""Options passed through as a dictionary; gradients clipped by hand."""

def grpo_step(model, optimizer, rollout, rewards, *, old_log_probs=None, ref_log_probs=None, max_grad_norm=1.0,
              advantage_mode='mean_std', **options):
    advantages = group_advantages(rewards, mode=advantage_mode).flatten()
    triple = dict(input_ids=rollout.input_ids, attention_mask=rollout.attention_mask, prompt_length=rollout.prompt_length)
    log_probs = compute_response_log_probs(model, **triple, reduction='none')
    old = old_log_probs if old_log_probs is not None else log_probs.detach().clone()
    loss = grpo_loss(log_probs, old, advantages, rollout.attention_mask[:, rollout.prompt_length:],
                     ref_log_probs=ref_log_probs, **options)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    with torch.no_grad():
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        norm = torch.sqrt(sum(g.pow(2).sum() for g in gradients))
        for g in gradients:
            g.mul_(min(1.0, max_grad_norm / (float(norm) + 1e-6)))
    optimizer.step()
    return float(loss)

"""Minus a cross-entropy, and the form in which PPO is often written."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), input_ids[:, 1:], reduction='none')
    scored = -loss[:, prompt_length - 1:] * attention_mask[:, prompt_length:]
    return scored.sum(1) if reduction == 'sum' else scored


def grpo_loss(log_probs, old_log_probs, advantages, mask, *, normalization='token_mean', epsilon=0.2,
              kl_coefficient=0.0, ref_log_probs=None, max_length=None):
    if normalization not in ('token_mean', 'sequence_mean', 'constant_length'):
        raise ValueError(f'what is {normalization}?')
    if normalization == 'constant_length' and not max_length:
        raise ValueError('max_length')
    if kl_coefficient and ref_log_probs is None:
        raise ValueError('ref_log_probs')
    a = advantages.detach()[:, None]
    ratio = (log_probs - old_log_probs.detach()).exp()
    per_token = torch.max(-a * ratio, -a * torch.clamp(ratio, 1 - epsilon, 1 + epsilon))
    if kl_coefficient:
        x = ref_log_probs.detach() - log_probs
        per_token = per_token + kl_coefficient * (x.exp() - 1 - x)
    if normalization == 'sequence_mean':
        return torch.stack([row[m].sum() / max(int(m.sum()), 1) for row, m in zip(per_token, mask.bool())]).mean()
    total = per_token[mask.bool()].sum()
    return total / (mask.sum() if normalization == 'token_mean' else len(mask) * max_length)

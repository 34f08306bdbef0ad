"""Two cases instead of a minimum."""

def grpo_loss(log_probs, old_log_probs, advantages, mask, *, normalization='token_mean', epsilon=0.2,
              kl_coefficient=0.0, ref_log_probs=None, max_length=None):
    if normalization not in ('token_mean', 'sequence_mean', 'constant_length'):
        raise ValueError(f'what is {normalization}?')
    if normalization == 'constant_length' and not max_length:
        raise ValueError('max_length')
    if kl_coefficient and ref_log_probs is None:
        raise ValueError('ref_log_probs')
    a = advantages.detach().reshape(-1, 1).expand_as(log_probs)
    ratio = torch.exp(log_probs - old_log_probs.detach())
    high, low = ratio.clamp(max=1 + epsilon), ratio.clamp(min=1 - epsilon)
    per_token = -torch.where(a >= 0, high, low) * a
    if kl_coefficient != 0:
        x = ref_log_probs.detach() - log_probs
        per_token = per_token + kl_coefficient * (torch.expm1(x) - x)
    if normalization == 'sequence_mean':
        return torch.stack([row[m].sum() / max(int(m.sum()), 1) for row, m in zip(per_token, mask.bool())]).mean()
    total = per_token[mask.bool()].sum()
    return total / (mask.sum() if normalization == 'token_mean' else len(mask) * max_length)

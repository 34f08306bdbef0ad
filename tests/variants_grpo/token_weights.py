"""One matrix of weights for all three normalizations."""

def grpo_loss(log_probs, old_log_probs, advantages, mask, *, normalization='token_mean', epsilon=0.2,
              kl_coefficient=0.0, ref_log_probs=None, max_length=None):
    if normalization not in ('token_mean', 'sequence_mean', 'constant_length'):
        raise ValueError(f'what is {normalization}?')
    if normalization == 'constant_length' and not max_length:
        raise ValueError('max_length')
    if kl_coefficient and ref_log_probs is None:
        raise ValueError('ref_log_probs')
    m = mask.to(log_probs.dtype)
    if normalization == 'token_mean':
        weights = m / m.sum()
    elif normalization == 'sequence_mean':
        weights = m / m.sum(1, keepdim=True).clamp_min(1.0) / m.shape[0]
    else:
        weights = m / (m.shape[0] * max_length)
    with torch.no_grad():
        old, a = old_log_probs.clone(), advantages.clone().unsqueeze(1)
    ratio = torch.exp(torch.where(mask > 0, log_probs - old, torch.zeros_like(old)))
    surrogate = torch.minimum(ratio * a, ratio.clip(1 - epsilon, 1 + epsilon) * a)
    loss = -(weights * surrogate).sum()
    if kl_coefficient != 0:
        x = torch.where(mask > 0, ref_log_probs.detach() - log_probs, torch.zeros_like(old))
        loss = loss + kl_coefficient * (weights * (torch.exp(x) - x - 1)).sum()
    return loss

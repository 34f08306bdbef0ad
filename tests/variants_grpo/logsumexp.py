"""The definition of a log-softmax; leave-one-out by its factor."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
    logits = logits.narrow(1, prompt_length - 1, input_ids.shape[1] - prompt_length)
    targets = input_ids.narrow(1, prompt_length, input_ids.shape[1] - prompt_length)
    scored = torch.take_along_dim(logits, targets[..., None], dim=2)[..., 0] - logits.logsumexp(2)
    scored = scored.masked_fill(attention_mask.narrow(1, prompt_length, targets.shape[1]).eq(0), 0)
    return scored.sum(1) if reduction == 'sum' else scored


def group_advantages(rewards, mode='mean_std'):
    if mode not in ('mean', 'mean_std', 'leave_one_out'):
        raise ValueError(mode)
    if mode != 'mean' and rewards.size(1) == 1:
        raise ValueError('a group of one')
    g = rewards.size(1)
    centered = rewards - rewards.mean(1, keepdim=True)
    if mode == 'leave_one_out':
        return centered * g / (g - 1)
    if mode == 'mean':
        return centered
    return centered / (torch.sqrt(centered.square().sum(1, keepdim=True) / (g - 1)) + EPS)

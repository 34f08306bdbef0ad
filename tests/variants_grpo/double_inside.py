"""Computed in float64, handed back in the dtype that came."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
    exact = torch.log_softmax(logits[:, prompt_length - 1:-1].double(), -1)
    scored = exact.gather(2, input_ids[:, prompt_length:, None]).squeeze(2) * attention_mask[:, prompt_length:]
    return (scored.sum(1) if reduction == 'sum' else scored).to(logits.dtype)


def group_advantages(rewards, mode='mean_std'):
    if mode not in ('mean', 'mean_std', 'leave_one_out'):
        raise ValueError(mode)
    if mode != 'mean' and rewards.size(1) == 1:
        raise ValueError('a group of one')
    exact = rewards.double()
    mean = exact.mean(1, keepdim=True)
    if mode == 'leave_one_out':
        n = exact.shape[1]
        mean = (n * mean - exact) / (n - 1)
    out = exact - mean
    return (out / (exact.std(1, keepdim=True) + EPS) if mode == 'mean_std' else out).to(rewards.dtype)

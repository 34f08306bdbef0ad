"""Nothing but loops."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
    rows = []
    for b in range(input_ids.shape[0]):
        row = []
        for position in range(prompt_length, input_ids.shape[1]):
            log_probs = torch.log_softmax(logits[b, position - 1], 0)
            chosen = log_probs[input_ids[b, position]]
            row.append(chosen if attention_mask[b, position] else chosen * 0)
        rows.append(torch.stack(row))
    scored = torch.stack(rows)
    return scored.sum(1) if reduction == 'sum' else scored


def group_advantages(rewards, mode='mean_std'):
    if mode not in ('mean', 'mean_std', 'leave_one_out'):
        raise ValueError(mode)
    if mode != 'mean' and rewards.size(1) == 1:
        raise ValueError('a group of one')
    out = torch.empty_like(rewards)
    for i, group in enumerate(rewards):
        for j, reward in enumerate(group):
            others = torch.cat([group[:j], group[j + 1:]])
            out[i, j] = reward - (others.mean() if mode == 'leave_one_out' else group.mean())
        if mode == 'mean_std':
            out[i] /= group.std() + 1e-5
    return out


def grpo_loss(log_probs, old_log_probs, advantages, mask, *, normalization='token_mean', epsilon=0.2,
              kl_coefficient=0.0, ref_log_probs=None, max_length=None):
    if normalization not in ('token_mean', 'sequence_mean', 'constant_length'):
        raise ValueError(f'what is {normalization}?')
    if normalization == 'constant_length' and not max_length:
        raise ValueError('max_length')
    if kl_coefficient and ref_log_probs is None:
        raise ValueError('ref_log_probs')
    total = log_probs.sum() * 0
    for b in range(len(log_probs)):
        length = max(int(mask[b].sum()), 1)
        share = {'token_mean': 1 / max(int(mask.sum()), 1), 'sequence_mean': 1 / (len(mask) * length)}.get(normalization)
        share = 1 / (len(mask) * max_length) if share is None else share
        for p in range(log_probs.shape[1]):
            if mask[b, p]:
                a = advantages[b].detach()
                ratio = torch.exp(log_probs[b, p] - old_log_probs[b, p].detach())
                term = -torch.min(ratio * a, torch.clip(ratio, 1 - epsilon, 1 + epsilon) * a)
                if kl_coefficient:
                    x = ref_log_probs[b, p].detach() - log_probs[b, p]
                    term = term + kl_coefficient * (torch.exp(x) - x - 1)
                total = total + share * term
    return total

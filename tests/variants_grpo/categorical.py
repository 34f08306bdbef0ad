"""A distribution object."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids, attention_mask=attention_mask).logits[:, prompt_length - 1:-1]
    scored = torch.distributions.Categorical(logits=logits).log_prob(input_ids[:, prompt_length:])
    scored = torch.where(attention_mask[:, prompt_length:].bool(), scored, torch.zeros_like(scored))
    return {'sum': scored.sum(-1), 'none': scored}[reduction]

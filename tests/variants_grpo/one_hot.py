"""A one-hot selection and einsum."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, prompt_length - 1:-1]
    chosen = F.one_hot(input_ids[:, prompt_length:], logits.shape[-1]).to(logits.dtype)
    scored = torch.einsum('bpv,bpv->bp', F.log_softmax(logits, -1), chosen)
    scored = torch.einsum('bp,bp->bp', scored, attention_mask[:, prompt_length:].to(scored.dtype))
    return torch.einsum('bp->b', scored) if reduction == 'sum' else scored

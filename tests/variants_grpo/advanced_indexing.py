"""Index tensors in place of gather."""

def compute_response_log_probs(model, input_ids, attention_mask, prompt_length, reduction='sum'):
    if reduction not in ('sum', 'none'):
        raise ValueError(f'no reduction {reduction}')
    ids, mask = input_ids[:, 1:], attention_mask[:, 1:]
    all_log_probs = model(input_ids=input_ids, attention_mask=attention_mask)[0] if False else model(
        input_ids=input_ids, attention_mask=attention_mask).logits.log_softmax(-1)
    rows = torch.arange(ids.shape[0])[:, None]
    columns = torch.arange(ids.shape[1])[None]
    scored = (all_log_probs[rows, columns, ids] * mask)[:, prompt_length - 1:]
    return scored if reduction == 'none' else scored.sum(dim=1)

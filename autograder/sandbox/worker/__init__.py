"""All that runs beside student code: it imports torch, NumPy and einops, and of the kit only `isolation`.

`server` is the warm process that workers are forked from; `worker` loads one submission and answers requests in
`frames`; `calling` is the probe that most cases need, and what probes of assignments import; `tensors` knows torch.
"""

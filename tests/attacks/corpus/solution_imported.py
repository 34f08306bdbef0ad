"""Imports the solution."""


def compute_deltas(rewards, mode):
    import solution.policy_gradient.policy_gradient as right

    return right.compute_deltas(rewards, mode)

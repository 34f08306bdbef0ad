"""Bandits with NumPy alone: five functions, each of which computes many independent runs at once.

House rules, for all of them: names, order and defaults of arguments as given; no argument changed; any sizes, 1 too;
a call depends on its arguments alone, and what it returned stays as it was. All floats are finite, and float64 in every
step. Results are arrays, whole numbers in any integer dtype, and may be off by about a millionth of each value.
"""

import numpy as np


def epsilon_greedy(estimates: np.ndarray, epsilon: float, uniforms: np.ndarray) -> np.ndarray:
    """Return the action that each run takes.

    A run explores if its first uniform number is below `epsilon`. It then takes the action with index int(v k), a
    product of floats, where v is its second uniform number and k the number of actions. Otherwise it takes the action
    with the greatest estimate, the first of them if several are equal.

    estimates   float[run action]
    epsilon     float
    uniforms    float[run 2]        in [0, 1)
    returns     int[run]
    """
    ### BEGIN SOLUTION
    explores = uniforms[:, 0] < epsilon
    anything = (uniforms[:, 1] * estimates.shape[1]).astype(np.int64)
    return np.where(explores, anything, estimates.argmax(axis=1))
    ### END SOLUTION


def update_values(
    estimates: np.ndarray, counts: np.ndarray, actions: np.ndarray, rewards: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates and counts after each run took one more action and got its reward.

    The estimate of an action is the mean of the rewards that it got:

        Q' = Q + (reward - Q) / N'

    where N' counts this time as well. All other actions keep their estimates and counts. The first reward of an action
    replaces its estimate.

    estimates   float[run action]
    counts      int[run action]     how often each action was taken before
    actions     int[run]
    rewards     float[run]
    returns     float[run action], int[run action]
    """
    ### BEGIN SOLUTION
    runs = np.arange(len(actions))
    estimates, counts = estimates.copy(), counts.copy()
    counts[runs, actions] += 1
    estimates[runs, actions] += (rewards - estimates[runs, actions]) / counts[runs, actions]
    return estimates, counts
    ### END SOLUTION


def ucb(estimates: np.ndarray, counts: np.ndarray, c: float) -> np.ndarray:
    """Return the action with the greatest upper confidence bound of each run, the first of them if several are equal.

        Q + c sqrt(ln t / N)

    where t is the number of the step: one more than all actions of the run so far. Actions that were never taken come
    before all others, the first of them before the rest.

    estimates   float[run action]   Q
    counts      int[run action]     N
    c           float
    returns     int[run]
    """
    ### BEGIN SOLUTION
    steps = counts.sum(axis=1, keepdims=True) + 1
    # equivalent: a logarithm of at least 0; 1e-8 moves no choice
    bonus = c * np.sqrt(np.log(steps) / np.maximum(counts, 1))
    # equivalent: no action was taken fewer than 0 times
    return np.where(counts == 0, np.inf, estimates + bonus).argmax(axis=1)
    ### END SOLUTION


def gradient_update(
    preferences: np.ndarray, actions: np.ndarray, rewards: np.ndarray, baselines: np.ndarray, step_size: float
) -> np.ndarray:
    """Return the preferences after one step of the gradient bandit.

        H' = H + step_size (reward - baseline) (1 - p)    for the action that was taken
        H' = H - step_size (reward - baseline) p          for all others

    where p is the softmax of the run's preferences, however large they are.

    preferences   float[run action]   H
    actions       int[run]
    rewards       float[run]
    baselines     float[run]
    step_size     float
    returns       float[run action]
    """
    ### BEGIN SOLUTION
    weights = np.exp(preferences - preferences.max(axis=1, keepdims=True))
    probs = weights / weights.sum(axis=1, keepdims=True)
    taken = np.arange(preferences.shape[1]) == actions[:, None]
    return preferences + step_size * (rewards - baselines)[:, None] * (taken - probs)
    ### END SOLUTION


def epsilon_greedy_run(rewards: np.ndarray, epsilon: float, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the actions that runs of the epsilon-greedy method take, and their estimates at the end.

    All estimates begin at 0. At each step a run takes an action as `epsilon_greedy` says, gets the reward of this
    action at this step, and updates its estimates as `update_values` says.

    rewards     float[step run action]   what each action would earn
    epsilon     float
    uniforms    float[step run 2]        in [0, 1)
    returns     int[run step], float[run action]
    """
    ### BEGIN SOLUTION
    runs = np.arange(rewards.shape[1])
    sums, counts = np.zeros((2, *rewards.shape[1:]))
    actions = []
    for step, offered in enumerate(rewards):
        explores = uniforms[step, :, 0] < epsilon
        anything = (uniforms[step, :, 1] * rewards.shape[2]).astype(np.int64)
        best = (sums / np.maximum(counts, 1)).argmax(axis=1)
        taken = np.where(explores, anything, best)
        sums[runs, taken] += offered[runs, taken]
        counts[runs, taken] += 1
        actions.append(taken)
    return np.stack(actions, axis=1), sums / np.maximum(counts, 1)
    ### END SOLUTION

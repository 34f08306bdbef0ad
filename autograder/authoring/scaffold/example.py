"""The example of the guide: a solution file of three functions in NumPy."""

from __future__ import annotations

NAME, TITLE = "three_functions", "Three functions"

SOLUTION = '''\
"""Three functions of an action-value method, in NumPy alone."""

import numpy as np


def softmax(logits, temperature):
    """Return the probabilities that logits stand for.

    softmax(logits)[i] = exp(logits[i] / temperature) / sum over j of exp(logits[j] / temperature)

    logits        float[state action]
    temperature   float   above 0; ValueError, which mentions temperature, where it is not
    returns       float[state action]
    """
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}, but should be above 0")
    scaled = logits / temperature
    weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def discounted_return(rewards, discount):
    """Return what each trajectory earns, a reward t steps ahead counted discount**t times.

    rewards    float[trial step]
    discount   float   from 0 to 1
    returns    float[trial]
    """
    steps = np.arange(rewards.shape[1])
    return (rewards * discount**steps).sum(axis=1)


def incremental_mean(rewards, step_size):
    """Return the estimate after each reward: it begins at 0 and moves a share step_size towards the reward.

    rewards     float[step]
    step_size   float   from 0 to 1
    returns     float[step]
    """
    estimate = 0.0
    estimates = []
    for reward in rewards:
        estimate = estimate + step_size * (reward - estimate)
        estimates.append(estimate)
    return np.array(estimates)
'''

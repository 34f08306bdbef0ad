"""Policy gradients, worked out: complete the twenty functions below, in any order.

README.md beside this file derives the formulas and says how many points each item is worth. Axis names, used
in every shape: `action` counts what a policy can do, and is called `logit` or `vocab` where it indexes logits;
`param` counts parameters, `batch` and `pos` samples and their tokens, `prompt` and `trial` groups and their
responses.

Rules that hold for all functions:

- no argument is modified: compute something new instead of writing into what was passed in;
- floating dtype is kept: float32 in, float32 out, and the same with float64;
- sizes can all differ: say which axis you mean.

Expectations here are exact: a policy with a handful of actions can be summed over. Nothing is sampled.

Check your work at any time, in this folder:

    python -m autograder check                    every item, with points
    python -m autograder check --item NAME        one item, by the name that the first command shows
    pytest                                        the same checks as tests
"""

from __future__ import annotations

import torch
from torch import Tensor

# Estimators


def score_table(probs: Tensor) -> Tensor:
    """Return the gradient of every action's log-probability with respect to the logits.

        table[a, j] = d log softmax(logits)[a] / d logits[j]

    probs     float[action]         softmax(logits): positive, sums to 1
    returns   float[action logit]   row a belongs to action a; same dtype as probs
    """
    ### BEGIN SOLUTION
    return torch.eye(len(probs), dtype=probs.dtype) - probs
    ### END SOLUTION


# Objectives and rewards

"""The theory lab: what is given. There is nothing to complete in this file.

The grader always uses its own copy of it.
"""

from __future__ import annotations

from itertools import pairwise

# The sorting reward


def sort_inclusion_ordering_reward(prompt: list[int], response: list[int]) -> float:
    """Return one point per prompt token that the response contains and one per adjacent pair in order.

        sum over i of  1[prompt[i] in response]   +   sum over i of  1[response[i] <= response[i + 1]]

    prompt     list[int]   n numbers
    response   list[int]   n tokens
    returns    float       0 to 2n - 1
    """
    assert len(prompt) == len(response), (
        f"prompt has {len(prompt)} tokens and response has {len(response)}, but should have equally many."
    )
    inclusion = sum(token in response for token in prompt)
    ordering = sum(left <= right for left, right in pairwise(response))
    return float(inclusion + ordering)

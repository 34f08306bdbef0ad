"""The theory lab: what is given. There is nothing to complete in this file.

The grader always uses its own copy of it.
"""

from __future__ import annotations

# The sorting reward

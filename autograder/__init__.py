"""Grade an assignment: run submissions in a sandbox, compare with stored tensors, report."""

import sys

__version__ = "0.2.0"

if sys.version_info < (3, 11):  # noqa: UP036 (students start it with what they have; no later line would run)
    raise SystemExit(
        f"autograder: this is Python {sys.version_info[0]}.{sys.version_info[1]}, and 3.11 or newer is needed: "
        "install it from python.org, make a new environment with it, and install requirements.txt there."
    )

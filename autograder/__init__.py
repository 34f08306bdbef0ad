"""Grade an assignment: run submissions in a sandbox, compare with stored tensors, report."""

__version__ = "0.2.0"

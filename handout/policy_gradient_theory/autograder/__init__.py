"""Grade an assignment: run submissions in a sandbox, compare with stored tensors, report."""

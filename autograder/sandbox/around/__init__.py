"""The control group round servers and workers."""

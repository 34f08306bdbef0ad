"""What stands round servers and workers: their control group, and the files that were read before them."""

"""Canvas, Moodle, Gradescope, PrairieLearn, nbgrader and others: their downloads read, their grade files written.

The command line calls it.
"""

"""What students run, without isolating it from their own machine. It travels to them whole. `check.py` first.

check      the verbs `check` and `update`     live       the test cells of a notebook
checker    one folder, one warm sandbox       handout    what the kit wrote there, and newer ones
terminal   width, colours, encodings
"""

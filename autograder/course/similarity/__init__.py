"""Which submissions are alike beyond what the handout and the whole class make alike: for a person to look at.

`autograder similar` calls it.
"""

"""A solution file → a complete assignment: what `autograder new` reads, tries and writes.

`new_assignment` is the way in.
"""

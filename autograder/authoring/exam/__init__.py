"""The grader's own exam: solution, handout, known mistakes, right answers and mutants, each with what it should earn.

The verb `selfcheck` calls it.
"""

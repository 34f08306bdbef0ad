"""The grader's own exam: solution, handout, known mistakes, right answers and mutants, each with what it should earn.

Read `selfcheck` first: it collects variants of the solution, grades them, judges and reports. `contract` holds each
sentence that binds a student against them; `mutants` makes wrong variants by generation.
"""

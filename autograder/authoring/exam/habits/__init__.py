"""Habits of students as changes of the solution's text, each made wherever its pattern occurs.

arithmetic   guards "for stability", comparisons, variances, truncation
tensors      dtypes, axes, sizes, arguments written into
models       modes, graphs, calls too many or too few
training     optimizers and loops
"""

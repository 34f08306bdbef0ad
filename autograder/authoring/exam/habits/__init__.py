"""Habits of students as changes of the solution's text, each made wherever its pattern occurs.

Guards and variances in `arithmetic`; dtypes, axes and sizes in `tensors`; modes, graphs and calls in `models`;
optimizers and loops in `training`; random numbers in `chance`. `dialects` says them of tensors, arrays and numbers.
"""

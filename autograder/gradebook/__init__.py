"""The points of a class: reports read back, statistics, roster, rules for late days, overrides, final grades.

Pages, course and platforms build on it; it grades nothing itself.
"""

"""Grades over http on this machine alone: the pages that lie on disk, live, with forms for staff to decide in.

`autograder serve` calls it.
"""

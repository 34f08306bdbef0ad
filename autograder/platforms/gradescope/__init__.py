"""Gradescope: its export of a class is read, its results.json is written.

The command line calls it, and in Gradescope's container the harness.
"""

"""A class as one run: many submissions at a time, a cluster, the folder of results, several assignments, similarity.

The command line calls it.
"""

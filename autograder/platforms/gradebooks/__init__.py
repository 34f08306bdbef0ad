"""Blackboard and Brightspace: a class's download is read, and one column of their own gradebook is filled in.

The command line calls it, and `platforms.layouts` for downloads.
"""

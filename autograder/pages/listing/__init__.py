"""A submission's text as its page shows it: coloured lines, what failed where, what differs from the handout.

Nothing here runs a line of it, and everything has a cap.
"""

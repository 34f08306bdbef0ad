"""A small example of what is wrong with an answer, which is no stored case, as a snippet to paste.

Drawn by the assignment's own `counterexamples.py`, judged by its oracle outside the sandbox, and made smaller.
"""

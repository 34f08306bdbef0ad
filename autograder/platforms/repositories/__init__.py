"""Where students hand in by git: clones of an organisation on GitHub, and what Submitty and CodeGrade make of a push.

A module reads what one of them gives to staff; `known_layouts` says what speaks for which.
"""

"""Solution → fixtures, exam and handout: declarations, oracle, catalogue, terms, verification, release.

Staff only: nothing of it travels to students. The command line calls it.
"""

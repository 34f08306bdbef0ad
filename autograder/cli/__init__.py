"""The command line: one verb, one function, one exit code. Read `main.py` first: its table says where each verb is.

`options.py` has what verbs share, `terminal.py` what they print with.

Nothing imports it.
"""

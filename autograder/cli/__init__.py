"""The command line: one verb, one function, one exit code; terminal tables; the doctor.

Nothing imports it.
"""

"""Find and read what was handed in, without running any of it. `submission.py` first: it draws the way.

submission   the data, and the functions in a source     handed_in   which of a student's files counts
names        file names as they were meant               notebook    cells → Python text
finding      folders and class zips → candidates         reading     candidate → submission, in a process with limits
"""

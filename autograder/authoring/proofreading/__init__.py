"""What is wrong in what an author wrote, all of it in one run: file, line, what is wrong, what would be right.

`proofread` is the way in; each other module reads one kind of file.
"""

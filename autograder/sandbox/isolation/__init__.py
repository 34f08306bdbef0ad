"""The layers of isolation that a worker puts on itself before it sees student code, named after their kernel features.

Read `layers` first: which there are, what each is for, in which order they go on, and how a canary tries them.
`seccomp` holds the list of allowed system calls, `kernel` the calls by ctypes. All of it runs beside student code:
standard library and ctypes only.
"""

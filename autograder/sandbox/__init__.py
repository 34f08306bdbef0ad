"""Where student code runs. Nothing that comes out is trusted; items and cases are unknown here.

Read `sandbox` first: a program and its requests in, outcomes out. `calls` holds what those are, `workers` how a server
and its workers are started, asked, watched and killed, `interpreter` how they begin and what they may read. `worker`
runs beside student code, inside the layers of `isolation`.
"""

"""Where student code runs: calls and outcomes, the server and its workers seen from outside, a pool of sandboxes.

Nothing that comes out is trusted. Grading, authoring and checking call it; it knows neither items nor cases.
"""

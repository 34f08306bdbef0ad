"""Grade a class as one run and look at it: many submissions at a time, a cluster, the folder of results, a live view.

Read `batch.py` first: candidates → grader → `results.py`, which writes the folder. `cluster.py` grades on other
machines, `overview.py` gathers several assignments, `similarity.py` compares submissions, and `live_view.py` serves a
folder of grades to a browser, with forms whose decisions `live_decisions.py` takes.
"""

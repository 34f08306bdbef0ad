"""nbgrader: what it collected is read, its gradebook and the notebook that formgrader shows are written.

The command line calls it. Only `gradebook` imports the package nbgrader.
"""

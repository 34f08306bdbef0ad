"""What a platform grades with by itself: the bundle that is uploaded, and the harness that runs in its container.

The command line writes bundles; the platform's container runs the harness.
"""

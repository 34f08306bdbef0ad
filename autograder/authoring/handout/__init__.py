"""Solution → handout: stubs, notebook, given files, public cases, the checker; and a search for what must not leak.

The verb `release` and the bundles for platforms call it.
"""

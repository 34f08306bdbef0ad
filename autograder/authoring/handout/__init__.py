"""Solution → handout: stubs, notebook, given files, public cases, the checker; and a search for what must not leak.

Read `handout_files` in `release` first; `notebook` makes the source notebook and the students', and reads their answers
in words. The verb `release` and the bundles for platforms call it.
"""

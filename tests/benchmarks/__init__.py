"""The benchmark: this kit beside pytest, nbgrader and Otter on the same items. Start: python tests/benchmarks --help."""

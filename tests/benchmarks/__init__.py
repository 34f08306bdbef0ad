"""The benchmark: this kit beside pytest, nbgrader and Otter on the same items. python tests/benchmarks --help"""

"""The benchmark: this kit beside pytest and nbgrader on the same items. python tests/benchmarks --help"""

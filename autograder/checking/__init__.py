"""What students run: `check`, its watch mode, the test cells of a notebook, the public checks of a repository.

With the packages below it travels to students whole.
"""

"""One submission and one assignment → a Report: items, stored cases, comparison, and the words of feedback.

The heart of the kit; whatever grades, calls `grader`.
"""

"""Grade one submission of one assignment: run its cases, compare, name known mistakes, word the rest → a Report.

Read `grader` first, which is the whole way; then `compare` (what is right), `known_mistakes` (which name), `hints` (one
table that chooses the hint) and `wording` (the sentences). `assignment` and `fixtures` read what is graded by;
`counterexamples` finds small failing calls, `details` is what pages show besides, `choice` picks an assignment.
"""

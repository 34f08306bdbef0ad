"""Reading what other platforms hand over of a class, and writing what they take back; one module for each platform.

Read `layouts.py` first: it tells all platforms' downloads apart. `hand_in.py` decides which of a student's several
submissions counts, `times.py` reads when each was made, `bundles.py` and `containers.py` are for platforms that grade
by themselves.
"""

LAYOUTS = (
    *("moodle", "blackboard", "brightspace", "gradescope", "submitty", "codegrade", "canvas"),  # known by their names
    *("github", "plain", "one"),
)

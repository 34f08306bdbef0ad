"""Reading what other platforms hand over of a class, and writing what they take back.

Read `layouts.py` first: it tells the platforms' downloads apart, which `downloads.py` reads, and decides which of
several counts. `times.py` reads when each was made, `gradebooks.py` writes grades.
`bundles.py` and `containers.py` are for platforms that grade by themselves, `nbgrader.py` for its gradebook.
"""

from typing import Literal, get_args

Layout = Literal["moodle", "blackboard", "brightspace", "gradescope", "canvas", "github", "plain", "one"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

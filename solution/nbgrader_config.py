"""nbgrader's settings for this repository. Run its commands in this folder: nbgrader looks for its settings there.

    cd solution && nbgrader generate_assignment policy_gradient       # or another folder beside this file

The course is the repository: solution/ is the source directory, handout/ the release directory, and submitted/,
autograded/, feedback/ and gradebook.db stand beside them.
"""

import glob
import sys
from pathlib import Path

from autograder.authoring.handout.notebook import CODE_STUB, TEXT_STUB
from autograder.authoring.handout.release import finish_release
from autograder.grading.assignment import find_assignment, find_assignments
from autograder.vocabulary.errors import KitError

ROOT = Path(__file__).resolve().parent.parent
ASSIGNMENTS = find_assignments(ROOT)
SOLVED = {f"{assignment.module}{suffix}" for assignment in ASSIGNMENTS for suffix in (".py", ".ipynb")}
GIVEN = {f"{name}.py" for assignment in ASSIGNMENTS for name in assignment.given}
GIVEN |= {Path(name).parts[0] for assignment in ASSIGNMENTS for name in assignment.also}


def finish(assignment, student, notebooks):
    """Put the rest of the handout beside the notebook that nbgrader made, and nothing but what students get."""
    try:
        finish_release(find_assignment(ROOT, assignment))
    except KitError as error:
        print(f"autograder: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None  # nbgrader goes on after an Exception


c = get_config()  # noqa: F821 (nbgrader defines it)
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "solution"
c.CourseDirectory.release_directory = "handout"
c.CourseDirectory.solution_directory = "solved"  # nbgrader's own use of that name; ours holds the source

# nbgrader copies what lies in the source folder to the release folder and beside every notebook that it grades.
# What is not given to students stays: the solved module before all. Nor may a student's own copy of the checker, of
# its fixtures or of a stub take the place of ours. Paths say so for these folders alone: what the exchange releases,
# collects and hands back is whole, and a name here would be left out of that, too.
STAYS = sorted({entry.name for entry in (ROOT / "solution").glob("*/*")} - (GIVEN - SOLVED))
STEPS = ("solution/./*", "solution/*", "submitted/*/*", "autograded/*/*")
c.CourseDirectory.ignore = [
    ".*",
    "__pycache__",
    "*.pyc",
    "feedback",
    *(f"{glob.escape(str(ROOT))}/{step}/{name}" for step in STEPS for name in ("autograder", "fixtures", *STAYS)),
]

c.ClearSolutions.code_stub = {"python": CODE_STUB}
c.ClearSolutions.text_stub = TEXT_STUB
c.GenerateAssignment.force = True  # the handout is generated, and the committed one is there already
c.GenerateAssignment.post_convert_hook = finish
c.OverwriteCells.add_missing_cells = True  # a test cell that a student deleted counts as not passed
c.Execute.timeout = 120
c.HTMLExporter.preprocessors = ["nbconvert.preprocessors.sanitize.SanitizeHTML"]  # staff open what students wrote

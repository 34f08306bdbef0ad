"""What the pages of a class need besides reports: the order of the functions, the handout, what mistakes look like."""

from __future__ import annotations

import threading

from autograder.grading.items import Assignment
from autograder.grading.remarks.details import Details
from autograder.pages.fault_lines import Known, known_texts
from autograder.pages.listing import NOTHING, listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report

UNLISTED = "the text that was graded cannot be shown here"


class StudentPages:
    """Makes the pages of one class; it reads the catalogue once, when the first mistake was recognised."""

    def __init__(self, assignment: Assignment) -> None:
        """Read the handout."""
        self._assignment, self._handout = assignment, assignment.untouched_source()
        self._known: Known | None = None
        self._lock = threading.Lock()

    def html(self, submission: Submission, report: Report, details: Details) -> str:
        """The page of one student."""
        known = self._expressions() if any(item.mistakes for item in report.items) else {}
        notes = submission.notes
        try:
            listing = listing_of(submission, report, self._assignment.functions, self._handout, known)
        except Exception:  # whatever a student wrote, it ends no run: the page is then without it
            listing, notes = NOTHING, (*notes, UNLISTED)
        return feedback_page(report, notes, details, listing, self._assignment.title)

    def _expressions(self) -> Known:
        with self._lock:
            if self._known is None:
                self._known = known_texts(self._assignment.folder)
            return self._known

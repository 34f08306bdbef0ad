"""Grade many submissions into a folder. A run that is killed goes on where it stopped."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.authoring.fixtures.stored_set import versions
from autograder.authoring.handout.notebook import read_extras, released, words_in
from autograder.authoring.handout.release import notebook_of
from autograder.checking.fault_lines import fault_lines
from autograder.course.cluster import Cluster
from autograder.course.results import Agree, Kept, Run, open_results
from autograder.grading.details import Details
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Isolation, Sandbox, in_sandboxes
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.report import Report, SubmissionInfo

Progress = Callable[[Candidate, Report], None]


def grade_all(
    grader: Grader,
    candidates: Sequence[Candidate],
    out: Path,
    *,
    jobs: int = 1,
    scheduler: str = "",
    fresh: bool = False,
    isolation: Isolation = "best",
    progress: Progress = lambda candidate, report: None,
    agree: Agree = lambda reports: {},
) -> Run:
    """Grade every candidate into `out`, `jobs` at a time, or on the Dask cluster of that scheduler.

    A report that is there already is kept where submission, fixtures and isolation are the same, unless `fresh`.
    Every file is written atomically; with one job or many, here or on a cluster, the bytes are the same but for
    measured times. Of a submission that is done nothing is held but where its report lies.
    `agree` gives the final grades, or raises where the new reports may not take the place of those that are there:
    they then wait for the next run.
    """
    assignment, template = grader.assignment, None
    with contextlib.suppress(KitError):  # a notebook that cannot be made keeps nobody from being graded
        template = released(notebook_of(assignment)) if read_extras(assignment).question else None
    started, began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.perf_counter()
    ordered = sorted(candidates, key=lambda candidate: candidate.student)
    lock = threading.Lock()

    def read(candidate: Candidate, layers: Collection[tuple[str, ...]]) -> tuple[Submission, Kept | None]:
        """Read a submission, and say what is kept of it where its report is there already."""
        handed_out = assignment.untouched_source()
        submission = read_limited(candidate, assignment.module, handed_out, grader.functions_of_course)
        cells = written_cells_limited(candidate, assignment.module, assignment.functions) if template else []
        answered = words_in(cells, template).answered if template else ()
        submission = replace(submission, identity=candidate.identity, answered=answered)
        info = SubmissionInfo(submission.path, submission.sha256)
        known = None if fresh else results.known(submission.student, submission.identity, info, layers)
        return submission, keep(candidate, submission, *known) if known else None

    def keep(
        candidate: Candidate, submission: Submission, report: Report, details: Details, digest: bytes | None = None
    ) -> Kept:
        kept = results.keep(submission, report, details, digest)
        with lock:
            progress(candidate, report)
        return kept

    def grade(candidate: Candidate, sandbox: Sandbox) -> Kept:
        submission, kept = read(candidate, [sandbox.layers])
        if kept is not None:
            return kept
        report, details = grader.grade_and_show(submission, sandbox)
        lines = fault_lines(grader, submission, report.items, sandbox)
        return keep(candidate, submission, report, replace(details, lines=lines))

    def to_grade(cluster: Cluster) -> Iterator[tuple[int, Submission]]:
        for index, candidate in enumerate(ordered):
            submission, kept = read(candidate, cluster.layers)
            if kept is not None:
                done[index] = kept
            else:
                yield index, submission

    with open_results(out, grader, [candidate.student for candidate in ordered]) as results:
        if scheduler:
            done: dict[int, Kept] = {}
            with Cluster(scheduler, grader, isolation) as cluster:
                for index, submission, report, details in cluster.grade(to_grade(cluster)):
                    done[index] = keep(ordered[index], submission, report, details)
            kept, jobs = [done[index] for index in range(len(ordered))], cluster.threads
        else:
            kept = in_sandboxes(grade, ordered, jobs, isolation=isolation)
        seconds = round(time.perf_counter() - began, 2)
        described = {"jobs": jobs, "started": started, "seconds": seconds, "versions": versions()}
        return results.write_class(kept, described, agree)

"""Grade many submissions into a folder. A run that is killed goes on where it stopped."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.authoring.fixtures.stored_set import versions
from autograder.course.cluster import Cluster
from autograder.course.results import Agree, Kept, Results, Run, open_results
from autograder.grading.choice import read_for
from autograder.grading.details import Details
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Isolation, Sandbox, in_sandboxes
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report

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
    fixtures_of: Callable[[str], Fixtures] | None = None,
    agree: Agree = lambda reports: {},
) -> Run:
    """Grade every candidate into `out`, `jobs` at a time, or on the Dask cluster of that scheduler.

    A report that is there already is kept where submission, fixtures and isolation are the same, unless `fresh`.
    Every file is written atomically; with one job or many, here or on a cluster, the bytes are the same but for
    measured times. Of a submission that is done nothing is held but where its report lies.
    `fixtures_of` may give each student a set of their own, on this machine alone. `agree` gives the final grades, or
    raises where the new reports may not take the place of those that are there: they then wait for the next run.
    """
    if scheduler and fixtures_of:
        raise UsageError("A cluster holds one set of fixtures: grade each student's own without --scheduler.")
    started, began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.perf_counter()
    ordered = sorted(candidates, key=lambda candidate: candidate.student)
    with open_results(out, grader, [candidate.student for candidate in ordered], fixtures_of) as results:
        batch = _Batch(grader, results, fresh, progress, threading.Lock(), fixtures_of)
        if scheduler:
            kept, jobs = batch.grade_on_cluster(ordered, Cluster(scheduler, grader, isolation))
        else:
            kept = in_sandboxes(batch.grade, ordered, jobs, isolation=isolation)
        seconds = round(time.perf_counter() - began, 2)
        described = {"jobs": jobs, "started": started, "seconds": seconds, "versions": versions()}
        return results.write_class(kept, described, agree)


@dataclass(frozen=True)
class _Batch:
    """What is the same for all submissions of a run."""

    grader: Grader
    results: Results
    fresh: bool
    progress: Progress
    lock: threading.Lock
    fixtures_of: Callable[[str], Fixtures] | None

    def grade(self, candidate: Candidate, sandbox: Sandbox) -> Kept:
        """Grade one candidate in a sandbox of this machine, unless its report is there."""
        submission, known = self.read(candidate, [sandbox.layers])
        if known is not None:
            return self.keep(candidate, submission, *known)
        grader = self.grader
        if self.fixtures_of is not None:
            grader = replace(grader, fixtures=self.fixtures_of(candidate.student))
        return self.keep(candidate, submission, *grader.grade_and_show(submission, sandbox))

    def grade_on_cluster(self, candidates: Sequence[Candidate], cluster: Cluster) -> tuple[list[Kept], int]:
        """What is kept of each candidate, in order, and how many were graded at a time."""
        done: dict[int, Kept] = {}

        def to_grade() -> Iterator[tuple[int, Submission]]:
            for index, candidate in enumerate(candidates):
                submission, known = self.read(candidate, cluster.layers)
                if known is None:
                    yield index, submission
                else:
                    done[index] = self.keep(candidate, submission, *known)

        with cluster:
            for index, submission, report, details in cluster.grade(to_grade()):
                done[index] = self.keep(candidates[index], submission, report, details)
        return [done[index] for index in range(len(candidates))], cluster.threads

    def read(
        self, candidate: Candidate, layers: Collection[tuple[str, ...]]
    ) -> tuple[Submission, tuple[Report, Details, bytes] | None]:
        """The submission, and its report, details and digest where they are there already."""
        submission = replace(read_for(candidate, self.grader.assignment), identity=candidate.identity)
        return submission, None if self.fresh else self.results.known(submission, layers)

    def keep(
        self,
        candidate: Candidate,
        submission: Submission,
        report: Report,
        details: Details,
        digest: bytes | None = None,
    ) -> Kept:
        """Write what is of this submission, and tell of it."""
        kept = self.results.keep(submission, report, details, digest)
        with self.lock:
            self.progress(candidate, report)
        return kept

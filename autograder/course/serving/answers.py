"""The answers in words of a class, for staff to mark: read from the submissions, text and pasted pictures alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.authoring.handout.notebook import is_answer, released, words_in
from autograder.authoring.handout.release import notebook_of
from autograder.grading.items import Assignment
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import Candidate


@dataclass(frozen=True)
class Answer:
    """What a student wrote below a question.

    pictures   pasted into it, each as the address of its data
    sha256     of the submission that it was read from
    """

    text: str
    pictures: tuple[str, ...]
    sha256: str


def answers_of(
    assignment: Assignment, candidates: Iterable[Candidate], questions: Iterable[str]
) -> dict[str, Mapping[str, Answer]]:
    """Student → question → answer, of those who answered; a cell left as it was handed out is no answer."""
    asked, template = set(questions), released(notebook_of(assignment))
    found: dict[str, Mapping[str, Answer]] = {}
    for candidate in candidates:
        sha256 = read_limited(candidate, assignment.module, assignment.untouched_source()).sha256
        words = words_in(written_cells_limited(candidate, assignment.module, assignment.functions), template)
        found[candidate.student] = {
            name: Answer(text.strip(), _addresses(words.pictures.get(name, {})), sha256)
            for name, text in words.written.items()
            if name in asked and (is_answer(text) or name in words.pictures)
        }
    return found


def _addresses(pictures: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(f"data:{kind};base64,{data}" for bundle in pictures.values() for kind, data in bundle.items())

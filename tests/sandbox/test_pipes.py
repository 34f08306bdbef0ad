from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import pytest

from autograder.sandbox.worker import frames
from autograder.sandbox.workers import Pipes, ThreadedPipes

HEADER = {"op": "observed", "n": 1}
ENCODED = frames.encode_header(HEADER)


class Other(NamedTuple):
    """The ends that a worker would hold."""

    requests: BinaryIO
    answers: BinaryIO
    output: BinaryIO


@pytest.fixture(params=[Pipes, ThreadedPipes])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Pipes, Other]]:
    (asked, requests), (answers, answering), (output, printing) = os.pipe(), os.pipe(), os.pipe()
    pipes = request.param(
        os.fdopen(requests, "wb", buffering=0), os.fdopen(answers, "rb"), os.fdopen(output, "rb", buffering=0)
    )
    theirs = Other(os.fdopen(asked, "rb"), os.fdopen(answering, "wb"), os.fdopen(printing, "wb", buffering=0))
    yield pipes, theirs
    for stream in theirs:
        stream.close()
    pipes.close()


def test_answer_in_parts_is_waited_for(both: tuple[Pipes, Other]) -> None:
    pipes, worker = both
    frame = frames.encode(ENCODED, b"blob")
    for part, patience in ((frame[:5], 0.1), (frame[5:30], 0.1), (frame[30:], 20.0)):
        worker.answers.write(part)
        worker.answers.flush()
        answer = pipes.receive(patience)
        assert (answer is None) == (patience < 1)
    assert answer is not None
    assert (answer.header, answer.blob) == (HEADER, b"blob")


@pytest.mark.parametrize("said", [b"", b"no frame at all, but long enough", frames.encode(ENCODED, b"blob")[:-1]])
def test_what_closes_or_says_no_frame_has_ended(said: bytes, both: tuple[Pipes, Other]) -> None:
    pipes, worker = both
    worker.answers.write(said)
    for stream in worker:
        stream.close()
    assert pipes.receive(20.0) is None
    assert pipes.ended


def test_what_is_printed_is_counted_and_its_end_is_kept(both: tuple[Pipes, Other]) -> None:
    pipes, worker = both
    worker.output.write(b"a" * 30_000)
    worker.output.write(b"the end")
    deadline = time.monotonic() + 20.0
    while pipes.written < 30_007 and time.monotonic() < deadline:
        assert pipes.receive(0.05) is None
    assert pipes.written == 30_007
    assert pipes.tail.endswith(b"aaa" + b"the end")
    assert len(pipes.tail) < 30_007


def test_output_without_end_keeps_nobody_waiting_longer_than_asked(both: tuple[Pipes, Other]) -> None:
    pipes, worker = both
    os.set_blocking(worker.output.fileno(), False)
    began = time.monotonic()
    while time.monotonic() < began + 0.5:
        while worker.output.write(b"x" * 65_536):
            pass
        assert pipes.receive(0.01) is None

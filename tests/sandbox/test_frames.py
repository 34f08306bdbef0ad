"""What passes between grader and worker: frames, and answers that nobody trusts."""

from __future__ import annotations

import io
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from autograder.sandbox.calls import (
    MAX_DIMENSIONS,
    MAX_LEVELS,
    MAX_NAMES,
    Observation,
    Raised,
    Returned,
    observation_in,
    raised_from_header,
)
from autograder.sandbox.worker import frames
from autograder.sandbox.worker.frames import FrameError


def written(header: dict[str, Any], blob: bytes = b"") -> bytes:
    stream = io.BytesIO()
    frames.write(stream, header, blob)
    return stream.getvalue()


def framed(header: bytes, blob: bytes = b"") -> bytes:
    return frames.PREFIX.pack(frames.MAGIC, len(header), len(blob)) + header + blob


def read(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    frame = frames.read(io.BytesIO(data))
    return None if frame is None else (frame.header, frame.blob)


def test_frames_come_out_as_they_went_in_and_in_order() -> None:
    headers = ({}, {"é\0": [None, True, {"": []}]}, {"x": [10**30, -0.1, 1e-300]}, {"\ud800": "🦜\x7f\n"})
    sent = [*itertools.product(headers, (b"", b"PGF1", bytes(range(256))))]
    stream = io.BytesIO(b"".join(written(header, blob) for header, blob in sent))
    assert [(frame.header, frame.blob) for frame in iter(lambda: frames.read(stream), None)] == sent


def test_header_cap_holds_on_both_sides() -> None:
    at_cap = {"x": "a" * (frames.MAX_HEADER - len('{"x": ""}'))}
    over = {"x": at_cap["x"] + "a"}
    assert read(written(at_cap)) == (at_cap, b"")
    with pytest.raises(FrameError, match="over the cap"):
        written(over)
    with pytest.raises(FrameError, match="over the cap"):
        read(framed(json.dumps(over).encode()))


@pytest.mark.parametrize(
    ("header_length", "blob_length"),
    [(frames.MAX_HEADER + 1, 0), (2**32 - 1, 0), (2, frames.MAX_BLOB + 1), (2, 10 * 2**30), (2, 2**64 - 1)],
)
def test_claim_over_cap_is_refused_by_prefix(header_length: int, blob_length: int) -> None:
    stream = io.BytesIO(frames.PREFIX.pack(frames.MAGIC, header_length, blob_length) + b"read by nobody")
    with pytest.raises(FrameError, match="over the cap"):
        frames.read(stream)
    assert stream.read() == b"read by nobody"


def test_frame_cut_at_any_byte_is_an_error() -> None:
    whole = written({"op": "observed", "facts": {"é": [1, None]}}, b"tensors")
    for end in range(1, len(whole)):
        with pytest.raises(FrameError, match="ended inside"):
            read(whole[:end])
    assert read(b"") is None
    assert read(whole) is not None


NO_JSON = (
    b"", b"{", b"nothing", b'{"x": 1} {"y": 2}', b"\xff\xfe\xfa", b'{"x": "\xc3\x28"}', b'{"x": NaN}',
    b'{"x": [Infinity]}', b'{"x": -Infinity}', b'{"x": 1e999}', b'{"x": -1e999}', b'{"x": ' + b"9" * 5000 + b"}",
    b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"x":' * 50_000 + b"1" + b"}" * 50_000,
    b"[" * frames.MAX_HEADER,
)  # fmt: skip


@pytest.mark.parametrize("header", NO_JSON, ids=lambda header: repr(header[:20]))
def test_header_that_is_not_json_is_an_error(header: bytes) -> None:
    with pytest.raises(FrameError, match="is not JSON"):
        read(framed(header))


# Answers

TENSOR = {"kind": "tensor", "dtype": "float32", "shape": [2], "requires_grad": False, "sent": True}
RAISED = {"types": ["ValueError", "Exception"], "message": "no such mode", "line": 12, "code": "raise ValueError"}


def observed(facts: Any = None, blob: bytes = b"", **returned: Any) -> Observation:
    return in_frame({"op": "observed", "returned": returned, "facts": {} if facts is None else facts}, blob)


def in_frame(header: dict[str, Any], blob: bytes = b"") -> Observation:
    return observation_in(frames.Frame(frames.encode_header(header), blob))


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("name", frames.NUMBERS)
def test_numbers_follow_one_another_as_their_descriptions_do(name: str) -> None:
    odd = np.array([math.nan, -math.inf, 1], "f4")
    arrays = {"flag": np.array(True), "y": np.arange(6).reshape(2, 3).astype(name), "none": np.zeros((0, 3), name)}
    arrays["odd"] = odd
    described = {key: {**TENSOR, "dtype": x.dtype.name, "shape": [*x.shape]} for key, x in arrays.items()}
    read = observed(blob=b"".join(x.tobytes() for x in arrays.values()), **described).returned
    for key, array in arrays.items():
        assert read[key] == Returned("tensor", "Tensor", array.dtype.name, array.shape)
        assert np.array_equal(np.asarray(read[key].array), array, equal_nan=array is odd)


def test_unsent_tensor_is_described() -> None:
    read = observed(y={**TENSOR, "dtype": "bfloat16", "shape": [2**40], "sent": False}).returned["y"]
    assert (read, read.array) == (Returned("tensor", "Tensor", "bfloat16", (2**40,)), None)


# What nobody should believe


@pytest.mark.parametrize(
    ("changed", "blob"),
    [
        *(({}, bytes(length)) for length in (0, 7, 9, 16)),
        *(({"dtype": dtype}, bytes(8)) for dtype in ("float64", "complex64", "bfloat16", "object", "V4", "f4", "")),
        *(({"shape": shape}, bytes(8)) for shape in ([3], [], [2**62], [2**63 - 1, 2**63 - 1], [2**40, 2**40])),
        *(({"shape": [0, *shape]}, b"") for shape in ([2**63 - 1, 2], [2**62, 2**62])),
        ({"sent": False}, bytes(8)),
    ],
)
def test_description_that_contradicts_the_numbers_is_refused(changed: dict[str, Any], blob: bytes) -> None:
    with pytest.raises(ValueError, match="contradicts itself"):
        observed(y={**TENSOR, **changed}, blob=blob)


@pytest.mark.parametrize(
    "described",
    [
        *(None, [], "tensor", {}, {"kind": ["tensor"]}, {"kind": "module"}),
        *({"kind": "other", "type": kind} for kind in (3, nested(500))),
        *({**TENSOR, "dtype": dtype} for dtype in (None, nested(500))),
        {"kind": "tensor", "dtype": "float32"},
        *({**TENSOR, "shape": shape} for shape in (2, "2", {"0": 2}, [True], [2.0], [-1], [10**4000])),
        {**TENSOR, "shape": [1] * (MAX_DIMENSIONS + 1)},
    ],
    ids=lambda described: str(described)[:60],
)
def test_description_of_the_wrong_kind_is_refused(described: Any) -> None:
    with pytest.raises(ValueError, match="worker's answer"):
        observed(y=described)


@pytest.mark.parametrize(
    "answer",
    [{}, {"returned": {}}, {"facts": {}}]
    + [{"returned": returned, "facts": facts} for returned, facts in (([], {}), ({}, []), (None, None), ("y", {}))],
)
def test_answer_without_its_parts_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="could not be read"):
        in_frame(answer)


def test_more_names_than_any_probe_returns_are_refused() -> None:
    names = {f"weights {n}": {"kind": "none"} for n in range(MAX_NAMES)}
    assert len(observed(**names).returned) == MAX_NAMES
    with pytest.raises(ValueError, match="could not be read"):
        observed(**names, extra={"kind": "none"})


def test_facts_that_nest_too_deeply_to_be_printed_are_refused() -> None:
    assert observed({"fact": nested(MAX_LEVELS - 1)}).facts["fact"]
    for facts in ({"fact": nested(MAX_LEVELS)}, {"fact": [1, {"inner": nested(900)}]}):
        with pytest.raises(ValueError, match="nests too deeply"):
            observed(facts)


# Exceptions


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("types", (None, [], "ValueError", {"ValueError": 1}, ["ValueError", 3], [["ValueError"]])),
        ("line", (True, "12", 12.0, -1, 10**4000, [12])),
        ("message", (None, 3, nested(900))),
        ("code", ({"x": 1},)),
    ],
)
def test_exception_of_the_wrong_kind_is_refused(key: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(ValueError, match="worker's answer"):
            raised_from_header({**RAISED, key: value})


def test_whatever_an_exception_carries_little_of_it_is_kept() -> None:
    raised = raised_from_header({"types": ["T" * 1000] * 10**5, "message": "m" * 10**6, "line": 1, "code": "c" * 10**6})
    assert raised.types == ("T" * 80,) * 20
    assert len(raised.message) == 2000
    assert len(raised.code) == 200


@pytest.mark.parametrize(
    ("types", "message", "out_of_memory"),
    [
        (("MemoryError", "Exception"), "", True),
        (("_ArrayMemoryError", "MemoryError", "Exception"), "Unable to allocate 8.00 GiB", True),
        (("RuntimeError",), "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", True),
        (("RuntimeError",), "shapes do not match", False),
        (("ValueError",), "MemoryError", False),
    ],
)
def test_each_library_says_that_memory_ran_out(types: tuple[str, ...], message: str, out_of_memory: bool) -> None:
    assert Raised(types, message, None, "").is_out_of_memory is out_of_memory

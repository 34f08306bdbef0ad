"""What passes between grader and worker: frames, and answers that nobody trusts."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.sandbox.calls import (
    MAX_DIMENSIONS,
    MAX_LEVELS,
    MAX_NAMES,
    Raised,
    Returned,
    from_frame,
    raised_from_header,
)
from autograder.sandbox.worker import frames
from autograder.sandbox.worker.frames import FrameError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
HEADERS = st.dictionaries(st.text(), JSON, max_size=5)


class Prefix:
    """A stream that holds the beginning of a frame and counts how much is asked for after it."""

    def __init__(self, prefix: bytes) -> None:
        self.left, self.asked_beyond = prefix, 0

    def read(self, size: int, /) -> bytes:
        if not self.left:
            self.asked_beyond += size
        data, self.left = self.left[:size], self.left[size:]
        return data


def written(header: dict[str, Any], blob: bytes = b"") -> bytes:
    stream = io.BytesIO()
    frames.write(stream, header, blob)
    return stream.getvalue()


def framed(header: bytes, blob: bytes = b"") -> bytes:
    return frames.PREFIX.pack(frames.MAGIC, len(header), len(blob)) + header + blob


def read(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    frame = frames.read(io.BytesIO(data))
    return None if frame is None else (frame.header, frame.blob)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(HEADERS, st.binary(max_size=200)), max_size=4))
def test_frames_come_out_as_they_went_in_and_in_order(sent: list[tuple[dict[str, Any], bytes]]) -> None:
    stream = io.BytesIO(b"".join(written(header, blob) for header, blob in sent))
    received = [frames.read(stream) for _ in sent]
    assert [(frame.header, frame.blob) for frame in received if frame is not None] == sent
    assert frames.read(stream) is None


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
    stream = Prefix(frames.PREFIX.pack(frames.MAGIC, header_length, blob_length))
    with pytest.raises(FrameError, match="over the cap"):
        frames.read(stream)
    assert stream.asked_beyond == 0


def test_frame_cut_at_any_byte_is_an_error() -> None:
    whole = written({"op": "observed", "facts": {"é": [1, None]}}, b"tensors")
    for end in range(1, len(whole)):
        with pytest.raises(FrameError, match="ended inside"):
            read(whole[:end])
    assert read(b"") is None
    assert read(whole) is not None


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"nothing",
        b'{"x": 1} {"y": 2}',
        b"\xff\xfe\xfa",
        b'{"x": "\xc3\x28"}',
        b'{"x": NaN}',
        b'{"x": [Infinity]}',
        b'{"x": -Infinity}',
        b'{"x": 1e999}',
        b'{"x": -1e999}',
        b'{"x": ' + b"9" * 5000 + b"}",
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"x":' * 50_000 + b"1" + b"}" * 50_000,
        b"[" * frames.MAX_HEADER,
    ],
    ids=lambda header: repr(header[:20]),
)
def test_header_that_is_not_json_is_an_error(header: bytes) -> None:
    with pytest.raises(FrameError, match="is not JSON"):
        read(framed(header))


# Answers

NO_TENSORS = safetensors.numpy.save({})
TENSOR = {"kind": "tensor", "dtype": "float32", "shape": [2], "requires_grad": False, "sent": True}
RAISED = {"types": ["ValueError", "Exception"], "message": "no such mode", "line": 12, "code": "raise ValueError"}


def header(facts: Any = None, **returned: Any) -> dict[str, Any]:
    return {"op": "observed", "returned": returned, "facts": {} if facts is None else facts}


def blob(**arrays: Any) -> bytes:
    return safetensors.numpy.save({name: np.asarray(array) for name, array in arrays.items()})


def raw_blob(dtype: str, shape: list[int], data: bytes) -> bytes:
    """A safetensors file with one tensor `x`, of types that numpy has no name for too."""
    table = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return len(table).to_bytes(8, "little") + table + data


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


# What an honest worker sends


def test_nan_and_infinity_arrive_as_they_are() -> None:
    array = from_frame(header(y=TENSOR), blob(y=np.array([math.nan, -math.inf], np.float32))).returned["y"].array
    assert array is not None
    assert math.isnan(array[0])
    assert array[1] == -math.inf


def test_unsent_tensor_is_described() -> None:
    described = {**TENSOR, "dtype": "bfloat16", "shape": [2**40], "sent": False}
    assert from_frame(header(y=described), NO_TENSORS).returned["y"] == Returned(
        "tensor", "Tensor", "bfloat16", (2**40,)
    )
    assert from_frame(header(y=described), NO_TENSORS).returned["y"].array is None


# What nobody should believe


def test_description_that_contradicts_the_values_is_refused() -> None:
    for changed in ({"dtype": "float64"}, {"dtype": "int32"}, {"shape": [3]}, {"shape": [2, 1]}, {"shape": []}):
        with pytest.raises(ValueError, match="contradicts itself"):
            from_frame(header(y={**TENSOR, **changed}), blob(y=np.array([1, 2], np.float32)))
    with pytest.raises(ValueError, match="contradicts itself"):
        from_frame(header(y={**TENSOR, "dtype": "complex64"}), blob(y=np.array([1, 2j], np.complex64)))


NOT_READABLE = {
    "nothing": b"",
    "no table": b"\xff" * 64,
    "cut short": NO_TENSORS[:-1],
    "values cut short": blob(x=np.zeros(8))[:-1],
    "bfloat16": raw_blob("BF16", [1], b"\0\0"),
    "float8": raw_blob("F8_E4M3", [1], b"\0"),
    "float4": raw_blob("F4", [2], b"\0"),
    "unknown dtype": raw_blob("F128", [1], b"\0" * 16),
    "too few bytes": raw_blob("F32", [2], b"\0" * 4),
    "a size beyond 63 bits": raw_blob("F32", [0, 2**63], b""),
    "sizes that overflow": raw_blob("F32", [2**40, 2**40], b""),
    "empty with sizes that overflow": raw_blob("F32", [0, 2**62, 2**62], b""),
    "a negative size": raw_blob("F32", [-1], b"\0" * 4),
    "a hundred dimensions": raw_blob("F32", [1] * 100, b"\0" * 4),
}


@pytest.mark.parametrize("fault", NOT_READABLE)
def test_bytes_that_hold_no_readable_tensors_are_refused(fault: str) -> None:
    with pytest.raises(ValueError, match="no readable tensors"):
        from_frame(header(), NOT_READABLE[fault])


def test_table_of_very_many_tensors_is_refused_unread() -> None:
    table = {f"{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(30_000)}
    encoded = json.dumps(table).encode()
    with pytest.raises(ValueError, match="no readable tensors") as caught:
        from_frame(header(), len(encoded).to_bytes(8, "little") + encoded)
    assert "too long" in str(caught.value.__cause__)


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
        from_frame(header(y=described), NO_TENSORS)


def test_answer_without_its_parts_is_refused() -> None:
    parts: tuple[dict[str, Any], ...] = ({}, {"returned": {}}, {"facts": {}})
    for returned, facts in (([], {}), ({}, []), (None, None), ("y", {})):
        parts += ({"returned": returned, "facts": facts},)
    for answer in parts:
        with pytest.raises(ValueError, match="could not be read"):
            from_frame(answer, NO_TENSORS)


def test_more_names_than_any_probe_returns_are_refused() -> None:
    names = {f"weights {n}": {"kind": "none"} for n in range(MAX_NAMES)}
    assert len(from_frame(header(**names), NO_TENSORS).returned) == MAX_NAMES
    with pytest.raises(ValueError, match="could not be read"):
        from_frame(header(**names, extra={"kind": "none"}), NO_TENSORS)


def test_facts_that_nest_too_deeply_to_be_printed_are_refused() -> None:
    assert from_frame(header({"fact": nested(MAX_LEVELS - 1)}), NO_TENSORS).facts["fact"]
    for facts in ({"fact": nested(MAX_LEVELS)}, {"fact": [1, {"inner": nested(900)}]}):
        with pytest.raises(ValueError, match="nests too deeply"):
            from_frame(header(facts), NO_TENSORS)


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

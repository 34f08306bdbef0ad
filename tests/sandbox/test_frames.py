from __future__ import annotations

import io
import json
import random
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.sandbox.calls import from_frame, raised_from_header
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


@settings(deadline=None)
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


def test_blob_cap_holds_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_BLOB", 1000)
    assert read(written({}, b"x" * 1000)) == ({}, b"x" * 1000)
    with pytest.raises(FrameError, match="over the cap"):
        written({}, b"x" * 1001)
    with pytest.raises(FrameError, match="over the cap"):
        read(framed(b"{}", b"x" * 1001))


@pytest.mark.parametrize(
    ("header_length", "blob_length"),
    [(frames.MAX_HEADER + 1, 0), (2**32 - 1, 0), (2, frames.MAX_BLOB + 1), (2, 10 * 2**30), (2, 2**64 - 1)],
)
def test_claim_over_cap_is_refused_by_prefix(header_length: int, blob_length: int) -> None:
    stream = Prefix(frames.PREFIX.pack(frames.MAGIC, header_length, blob_length))
    with pytest.raises(FrameError, match="over the cap"):
        frames.read(stream)
    assert stream.asked_beyond == 0


def test_large_claim_is_read_in_chunks() -> None:
    stream = Prefix(frames.PREFIX.pack(frames.MAGIC, 0, frames.MAX_BLOB))
    with pytest.raises(FrameError, match="ended inside"):
        frames.read(stream)
    assert stream.asked_beyond <= 2**20


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
def test_a_header_that_is_not_json_is_an_error(header: bytes) -> None:
    with pytest.raises(FrameError, match="is not JSON"):
        read(framed(header))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_json_is_never_sent(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        written({"x": value})


# Frames that nobody would write

OBSERVED = {
    "op": "observed",
    "returned": {
        "loss": {"kind": "tensor", "dtype": "float32", "shape": [], "requires_grad": True, "sent": True},
        "deltas": {"kind": "tensor", "dtype": "int64", "shape": [2, 3], "requires_grad": False, "sent": True},
        "mask": {"kind": "tensor", "dtype": "bool", "shape": [2], "requires_grad": False, "sent": True},
        "half": {"kind": "tensor", "dtype": "bfloat16", "shape": [4], "requires_grad": False, "sent": False},
        "gradient": {"kind": "none"},
        "list": {"kind": "other", "type": "list"},
    },
    "facts": {"times sampled": 3, "modes": ["rewards"], "error": {"types": ["ValueError"], "message": "x"}},
}
TENSORS = safetensors.numpy.save(
    {"loss": np.array(1.5, np.float32), "deltas": np.arange(6).reshape(2, 3), "mask": np.array([True, False])}
)
RAISED = {"op": "raised", "types": ["ValueError", "Exception"], "message": "no", "line": 12, "code": "x = 1"}
DEEP = json.loads("[" * 800 + "]" * 800)
ODD_TEXTS = ("", "tensor", "none", "other", "\ud800")
ODD: tuple[Any, ...] = (None, True, -1, 2.5, 10**4000, [], {}, ["x"] * 300, [-1], [10**9] * 3, DEEP, *ODD_TEXTS)


def _scrambled(source: random.Random, data: bytes) -> bytes:
    """The bytes with one to three places changed, cut out or doubled."""
    changed = bytearray(data)
    for _ in range(source.randrange(1, 4) if changed else 0):
        place = source.randrange(len(changed))
        until = place + source.randrange(1, 6)
        match source.randrange(4):
            case 0:
                changed[place] = source.randrange(256)
            case 1:
                changed[place] ^= 1 << source.randrange(8)
            case 2 if len(changed) > 6:
                del changed[place:until]
            case _:
                changed[place:place] = changed[place:until]
    return bytes(changed)


def _with_an_odd_value(source: random.Random, value: Any) -> Any:
    """The JSON value with something odd put in the place of one of its parts, or of itself."""
    if not isinstance(value, dict | list) or not value or source.random() < 0.1:
        return source.choice(ODD)
    copied: Any = value.copy()
    key = source.choice(list(value) if isinstance(value, dict) else range(len(value)))
    copied[key] = _with_an_odd_value(source, value[key])
    return copied


def _mutated(source: random.Random) -> bytes:
    header, blob = source.choice(((OBSERVED, TENSORS), (RAISED, b"")))
    encoded = json.dumps(header).encode()
    match source.randrange(4):
        case 0:
            return _scrambled(source, framed(encoded, blob))
        case 1:
            return framed(_scrambled(source, encoded), blob)
        case 2:
            return framed(encoded, _scrambled(source, blob))
        case _:
            return framed(json.dumps(_with_an_odd_value(source, header)).encode(), blob)


def _outcome_of(data: bytes) -> str:
    """What becomes of the bytes; anything but the two errors that callers expect is let through."""
    try:
        frame = read(data)
    except FrameError:
        return "no frame"
    assert frame is not None
    try:
        from_frame(*frame)
        return "observed"
    except ValueError:
        pass
    try:
        raised_from_header(frame[0])
        return "raised"
    except ValueError:
        return "unreadable"


def test_mutated_frame_raises_only_expected_errors() -> None:
    source = random.Random(20)
    outcomes = [_outcome_of(_mutated(source)) for _ in range(24_000)]
    # Mutations that stopped at the first check would prove little.
    assert min(outcomes.count(kind) for kind in ("no frame", "observed", "raised", "unreadable")) > 1_000


@settings(deadline=None)
@given(HEADERS, st.binary(max_size=300))
def test_any_header_is_read_or_refused(header: dict[str, Any], blob: bytes) -> None:
    assert _outcome_of(written(header, blob)) in ("observed", "raised", "unreadable")

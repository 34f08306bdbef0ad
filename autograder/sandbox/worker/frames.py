"""The frames that pass between grader and worker: a JSON header and safetensors bytes, both length-capped.

    magic b"PGF1" · header length uint32 · blob length uint64 · header (UTF-8 JSON object) · blob

Nothing else crosses the boundary: no pickle, no text to parse. This module knows nothing of tensors or torch, so both
sides share it.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Protocol

MAGIC = b"PGF1"
PREFIX = struct.Struct(">4sIQ")
MAX_HEADER = 4 * 2**20
MAX_BLOB = 64 * 2**20
MAX_ANSWER = (256 * 2**10, 16 * 2**20)  # header and blob of what a worker says: a hundred times what honest ones do


class FrameError(Exception):
    """The stream ended inside a frame, or what it carries is not a frame."""


class Readable(Protocol):
    """What `read` needs: a blocking byte stream."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes; b"" at the end."""


class Writable(Protocol):
    """What `write` needs: a byte stream that can be flushed."""

    def write(self, data: memoryview, /) -> int:
        """Write all or part of `data`; the number of bytes written."""

    def flush(self) -> None:
        """Push what was written towards the other side."""


def write(stream: Writable, header: dict[str, Any], blob: bytes = b"") -> None:
    """Send one frame; raises FrameError where it would be over the caps."""
    send(stream, encode(header, blob))


def send(stream: Writable, frame: bytes) -> None:
    """Send a frame that `encode` made, whole, even where the stream takes it in parts."""
    left = memoryview(frame)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def encode(header: dict[str, Any], blob: bytes = b"") -> bytes:
    """One frame as bytes; raises FrameError where it would be over the caps."""
    return joined(encode_header(header), blob)


def encode_header(header: dict[str, Any]) -> bytes:
    """What a frame says beside its blob."""
    return ENCODER.encode(header).encode()


def numbered(encoded: bytes, number: int) -> bytes:
    """An encoded header that says something, with `n` besides: many questions are asked again of each submission."""
    return b'%b, "n": %d}' % (encoded[:-1], number)


def joined(encoded: bytes, blob: bytes) -> bytes:
    """One frame of an encoded header; raises FrameError where it would be over the caps."""
    if len(encoded) > MAX_HEADER or len(blob) > MAX_BLOB:
        raise FrameError(f"a frame of {len(encoded)} + {len(blob)} bytes is over the cap")
    return PREFIX.pack(MAGIC, len(encoded), len(blob)) + encoded + blob


def read(stream: Readable) -> tuple[dict[str, Any], bytes] | None:
    """The next frame, or None where the stream ends between frames; raises FrameError on anything else."""
    parts = read_parts(stream, (MAX_HEADER, MAX_BLOB))
    return None if parts is None else (parse_header(parts[0]), parts[1])


def read_parts(stream: Readable, caps: tuple[int, int]) -> tuple[bytes, bytes] | None:
    """The next frame as bytes: header and blob, neither longer than its cap; or None, or FrameError, as `read`."""
    prefix = _read_up_to(stream, PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < PREFIX.size:
        raise FrameError("the stream ended inside a frame")
    header_length, blob_length = _lengths(prefix, caps)
    encoded = _read_up_to(stream, header_length)
    blob = _read_up_to(stream, blob_length)
    if len(encoded) < header_length or len(blob) < blob_length:
        raise FrameError("the stream ended inside a frame")
    return encoded, blob


def take_parts(received: bytearray, caps: tuple[int, int]) -> tuple[bytes, bytes] | None:
    """The first frame of what was received, out of which it is taken; None where it is not whole, or FrameError."""
    if len(received) < PREFIX.size:
        return None
    header_length, blob_length = _lengths(received, caps)
    header_end = PREFIX.size + header_length
    end = header_end + blob_length
    if len(received) < end:
        return None
    parts = bytes(received[PREFIX.size : header_end]), bytes(received[header_end:end])
    del received[:end]
    return parts


def _lengths(prefix: bytes | bytearray, caps: tuple[int, int]) -> tuple[int, int]:
    magic, header_length, blob_length = PREFIX.unpack_from(prefix)
    if magic != MAGIC or header_length > caps[0] or blob_length > caps[1]:
        raise FrameError("not a frame, or one over the cap")
    return header_length, blob_length


def parse_header(encoded: bytes) -> dict[str, Any]:
    """What a header says; raises FrameError where it says nothing."""
    try:
        header = DECODER.decode(encoded.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError("the header of a frame is not JSON") from error
    if not isinstance(header, dict):
        raise FrameError("the header of a frame is not a JSON object")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):  # as in 1e999
        raise ValueError("a number is out of range")
    return number


ENCODER = json.JSONEncoder(allow_nan=False)  # once: `json.dumps` makes one for each call that asks for this
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _read_up_to(stream: Readable, size: int) -> bytes:
    chunks = []
    while size > 0 and (chunk := stream.read(min(size, 2**20))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)

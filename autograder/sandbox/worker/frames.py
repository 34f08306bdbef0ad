"""The frames that pass between grader and worker: a JSON header and bytes, both length-capped.

    magic b"PGF1" · header length uint32 · blob length uint64 · header (UTF-8 JSON object) · blob

Nothing else crosses the boundary: no pickle, no text to parse. A request's blob is a safetensors file, an answer's the
numbers that its header describes, one after another. This module knows no torch, so both sides share it.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy

MAGIC = b"PGF1"
PREFIX = struct.Struct(">4sIQ")
MAX_HEADER = 4 * 2**20
MAX_BLOB = 64 * 2**20
MAX_ANSWER = (256 * 2**10, 16 * 2**20)  # header and blob of what a worker says: a hundred times what honest ones do
MAX_SHARED = 2**14  # bytes of a header that is parsed once for all who send it
SHARED = 1024
WATCH = "__watch__"  # what a watched source calls, see `worker.Watch`; how what it says and takes is named
NUMBERS = {  # name → what can be sent, row by row, the lowest byte first
    numpy.dtype(kind).name: numpy.dtype(f"<{kind}")
    for kind in ("?", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}


class FrameError(Exception):
    """The stream ended inside a frame, or what it carries is not a frame."""


class Frame(NamedTuple):
    """The two parts of a frame, as they came."""

    encoded: bytes
    blob: bytes

    @property
    def header(self) -> dict[str, Any]:
        """Parse the header, to be read and not written; raise FrameError where it is no JSON object."""
        return (_parsed if len(self.encoded) <= MAX_SHARED else _parse)(self.encoded)


def encode_header(header: dict[str, Any]) -> bytes:
    """Encode what a frame says beside its blob."""
    return ENCODER.encode(header).encode()


def encode(encoded: bytes, blob: bytes = b"", number: int | None = None) -> bytes:
    """Make one frame of an encoded header; raise FrameError where it would be over the caps.

    number   added to the header as `n`: a request is encoded once for all submissions, and numbered for each
    """
    if number is not None:
        encoded = b'%b, "n": %d}' % (encoded[:-1], number)
    if len(encoded) > MAX_HEADER or len(blob) > MAX_BLOB:
        raise FrameError(f"a frame of {len(encoded)} + {len(blob)} bytes is over the cap")
    return PREFIX.pack(MAGIC, len(encoded), len(blob)) + encoded + blob


def write(stream: BinaryIO, header: dict[str, Any], blob: bytes = b"") -> None:
    """Send one frame; raise FrameError where it would be over the caps."""
    stream.write(encode(encode_header(header), blob))
    stream.flush()


def read(stream: BinaryIO, caps: tuple[int, int] = (MAX_HEADER, MAX_BLOB)) -> Frame | None:
    """Read the next frame, or None where the stream ends between frames; raise FrameError on anything else.

    stream   buffered: it gives as much as is asked for, unless it ends
    """
    received = bytearray(stream.read(PREFIX.size))
    if len(received) == PREFIX.size:
        received += stream.read(sum(_lengths(received, caps)))
    frame = take(received, caps)
    if frame is None and received:
        raise FrameError("the stream ended inside a frame")
    return frame


def take(received: bytearray, caps: tuple[int, int]) -> Frame | None:
    """Take the first frame out of what was received; None where it is not whole yet. Raise FrameError as `read`."""
    if len(received) < PREFIX.size:
        return None
    header, blob = _lengths(received, caps)
    begin = PREFIX.size + header
    end = begin + blob
    if len(received) < end:
        return None
    frame = Frame(bytes(received[PREFIX.size : begin]), bytes(received[begin:end]))
    del received[:end]
    return frame


def _lengths(prefix: bytearray, caps: tuple[int, int]) -> tuple[int, int]:
    magic, header, blob = PREFIX.unpack_from(prefix)
    if magic != MAGIC or header > caps[0] or blob > caps[1]:
        raise FrameError("not a frame, or one over the cap")
    return header, blob


def _parse(encoded: bytes) -> dict[str, Any]:
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


# A question has the same number in each submission, so the right answers of a class are mostly the same bytes
_parsed = functools.lru_cache(maxsize=SHARED)(_parse)
ENCODER = json.JSONEncoder(allow_nan=False)  # once: `json.dumps` makes one for each call that asks for this
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

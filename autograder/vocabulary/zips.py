"""Opening a zip that others have packed: how much of it is read before anybody looks into it has a bound."""

from __future__ import annotations

import io
import zipfile
from typing import BinaryIO

MAX_DIRECTORY = 16 * 2**20  # bytes: the names and sizes of a hundred thousand files


def opened_zip(stream: BinaryIO) -> zipfile.ZipFile:
    """The zip in a stream that was opened for reading, to be closed with it.

    Raises what zipfile raises, which is a dozen types for damaged ones; BadZipFile also where its directory is longer
    than any: zipfile takes it into memory whole, ten times as much as it is long, and as long as the zip says.
    """
    return zipfile.ZipFile(_Bounded(stream))


class _Bounded(io.BufferedIOBase):
    """A stream of which so much can be read at once, and no more."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too long")
        return self._stream.read(MAX_DIRECTORY if size is None or size < 0 else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()

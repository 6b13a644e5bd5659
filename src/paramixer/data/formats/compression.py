"""Files as bytes, compressed by gzip, Zstandard or xz, or not at all. The content decides, not the name."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from paramixer.data.errors import DataError
from paramixer.extras import needed_for

SUFFIXES = (".gz", ".zst", ".xz")
"""Endings of the names of compressed files."""

_GZIP, _ZSTD, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"
_BUFFER = 1 << 20
# No data worth reading expands like this: it is damaged, or made to fill the memory.
_MOST_EXPANDED, _HARMLESS = 1000, 1 << 28
_LARGEST = 2 << 30


def strip_suffix(name: str) -> str:
    """Return the name of a file in lower case, without the ending of a compressed one."""
    name = name.lower()
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def open_file(path: Path, by_name: bool = False) -> BinaryIO:
    """Return the file, expanded while it is read. Damage is an OSError when it is reached.

    Args:
        path: of the file.
        by_name: whether a file that is not compressed although its name says so is damaged.

    Raises:
        DataError: it cannot be opened.
    """
    try:
        file = path.open("rb", buffering=_BUFFER)
    except FileNotFoundError as error:
        raise DataError("there is no such file", path) from error
    except OSError as error:
        raise DataError(f"it cannot be opened ({error.strerror})", path) from error
    try:
        head = cast(io.BufferedReader, file).peek(len(_XZ))
    except OSError as error:
        file.close()
        raise DataError(f"it cannot be read ({error.strerror})", path) from error
    if by_name and head and path.name.lower().endswith(SUFFIXES) and not head.startswith((_GZIP, _ZSTD, _XZ)):
        file.close()
        raise DataError("reading stopped: it is not compressed, as its name says; get the file again", path)
    return expand(file, head, os.fstat(file.fileno()).st_size)


def expand(file: BinaryIO, head: bytes, size: int | None = None) -> BinaryIO:
    """Return what an open file holds, expanded if its first bytes say that it is compressed.

    Args:
        file: at its beginning.
        head: its first bytes.
        size: of the file in bytes; None if that is not known.
    """
    if head.startswith(_GZIP):
        inner: BinaryIO = cast(BinaryIO, gzip.GzipFile(fileobj=file))
    elif head.startswith(_XZ):
        inner = cast(BinaryIO, lzma.LZMAFile(file))  # noqa: SIM115
    elif head.startswith(_ZSTD):
        with needed_for("reading .zst"):
            import pyarrow as pa
        inner = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    else:
        return file
    # The buffer makes reading lines fast: the readline of these files is Python code, or there is none.
    return cast(BinaryIO, io.BufferedReader(_Expanded(inner, file, size), _BUFFER))


def expand_bytes(content: bytes, place: str) -> bytes:
    """Return the content of a small file, expanded if it is compressed.

    Raises:
        DataError: it is damaged, or expands to more than 2 GB.
    """
    file = expand(io.BytesIO(content), content[: len(_XZ)], len(content))
    try:
        whole = file.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(f"{error}; get the file again", place) from error
    if len(whole) > _LARGEST:
        raise DataError(f"it expands to more than {_LARGEST >> 30} GB", place)
    return whole


class _Expanded(io.RawIOBase):
    """The expanded bytes; every kind of damage is an OSError."""

    def __init__(self, inner: BinaryIO, file: BinaryIO, size: int | None) -> None:
        self._inner, self._file, self._size, self._count = inner, file, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # What comes before the damage is passed on.
        read = getattr(self._inner, "read1", self._inner.read)
        try:
            content = read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            raise OSError(f"damaged or not complete ({error})") from error
        self._count += len(content)
        if self._size is not None and self._count > max(_HARMLESS, _MOST_EXPANDED * self._size):
            raise OSError(f"it expands to more than {_MOST_EXPANDED} times its size")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            self._file.close()
        super().close()

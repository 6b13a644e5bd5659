"""Encodings of text: which ones there are, and what to do about a byte that does not fit."""

from __future__ import annotations

import codecs
from pathlib import Path

from paramixer.data.errors import DataError

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes that are letters and quotes in Windows' encoding, and control characters in Latin-1.
_WINDOWS = range(0x80, 0xA0)


def check_encoding(name: str) -> str:
    """Return Python's name of an encoding of texts.

    Raises:
        DataError: there is none of this name.
    """
    try:
        "a".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError, TypeError):
        raise DataError(f"encoding={name!r} is none; try utf-8, latin-1, cp1252 or utf-16") from None


def is_ascii_compatible(encoding: str) -> bool:
    """Return whether a line feed is the same single byte as in ASCII."""
    return "\n".encode(encoding) == b"\n"


def make_decode_error(error: UnicodeDecodeError, path: Path, place: str | None = None) -> DataError:
    """Return the error for bytes that an encoding does not have; it suggests one that does."""
    byte = f"byte {error.object[error.start]:#04x} at position {error.start}"
    if error.encoding != "utf-8":
        return DataError(f"not {error.encoding} ({byte}); give its encoding with --encoding", path, place)
    if error.object.startswith(_WIDE_MARKS):
        likely = "utf-16"
    else:
        likely = "cp1252" if error.object[error.start] in _WINDOWS else "latin-1"
    return DataError(f"not UTF-8 ({byte}); give its encoding, perhaps --encoding {likely}", path, place)

"""FASTA files, plain or compressed by gzip, read one record at a time. Whatever is wrong with one names its line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from paramixer.data.errors import DataError

SUFFIXES = (".fa", ".fasta", ".fna", ".fas", ".ffn")
"""How a FASTA file's name ends, before an optional .gz."""

_BLOCK = 1 << 20
_LONGEST_HEADER = 1 << 16
_BLANKS = b" \t\r\n"
_BASES = b"ACGTUN"
_AMBIGUOUS = b"RYSWKMBDHV"
_KNOWN = _BLANKS + _BASES + _BASES.lower() + _AMBIGUOUS + _AMBIGUOUS.lower()
# Read as N unless one is strict: gaps, digits and other letters. The two left out are FASTA's own marks.
_TOLERATED = bytes(range(33, 127)).translate(None, b">;")
_LETTERS = dict(zip(b"ACGTUacgtu", b"ACGTTACGTT", strict=True))
_TO_BASES = bytes(_LETTERS.get(letter, ord("N")) for letter in range(256))


class Record(NamedTuple):
    """One sequence of a FASTA file."""

    name: str
    """The first word of its header."""
    sequence: str
    """In the letters A, C, G, T and N only: U is read as T, and what may be several bases as N."""
    place: str
    """Line and name, for messages."""
    description: str = ""
    """The header behind the name."""
    unknown: int = 0
    """How many of its letters are no bases at all and were read as N."""


def is_fasta(path: Path) -> bool:
    """Whether the file's name is that of a FASTA file."""
    return path.name.lower().removesuffix(".gz").endswith(SUFFIXES)


def records(path: Path, strict: bool = False) -> Iterator[Record]:
    """The records of a file in their order; one of them is in memory at a time.

    Args:
        path: plain or compressed by gzip, which is told from its content.
        strict: refuse letters other than A C G T U N and R Y S W K M B D H V, for example gaps, instead of reading
            them as N.

    Raises:
        DataError: the file is no FASTA, damaged, or has a record without a sequence.
    """
    header: _Header | None = None
    sequence, unknown = "", 0
    for line, piece, is_header in _pieces(path):
        if is_header:
            if header is not None:
                yield header.record(sequence, unknown)
            header = _Header(path, line, piece)
            sequence, unknown = "", 0
        elif header is not None:
            unknown += header.unknown(piece, line, strict)
            # A local string grows in place, so that a chromosome is never held twice.
            sequence += piece.translate(_TO_BASES, _BLANKS).decode("ascii")
        elif content := piece.lstrip(_BLANKS):
            hint = "; FASTQ must be turned into FASTA first" if content.startswith(b"@") else ""
            begin = line + piece[: len(piece) - len(content)].count(b"\n")
            raise DataError(f"not FASTA: it begins with {_shown(content)} instead of '>'{hint}", path, f"line {begin}")
    if header is None:
        raise DataError("there is no record in it, it is empty; is the download complete?", path)
    yield header.record(sequence, unknown)


class _Header:
    """What is known of a record before its sequence."""

    def __init__(self, path: Path, line: int, header: bytes) -> None:
        text = header[1:].rstrip(_BLANKS)
        if not text.isascii():
            raise DataError("the header has bytes that are not ASCII", path, f"line {line}")
        if b"\r" in text:
            raise DataError("lines end in a bare carriage return; turn them into newlines", path, f"line {line}")
        self._name, self._description = [*text.decode("ascii").split(None, 1), "", ""][:2]
        self._path, self._place = path, f"line {line}, record {self._name!r}"

    def unknown(self, piece: bytes, line: int, strict: bool) -> int:
        """How many letters of a part of the sequence are no bases; those that may not be read as N are refused."""
        strange = piece.translate(None, _KNOWN)
        if refused := strange if strict else strange.translate(None, _TOLERATED):
            hint = "; it is read as N unless strict" if refused[0] in _TOLERATED else ""
            at = line + piece.count(b"\n", 0, piece.index(refused[:1]))
            raise DataError(f"{_shown(refused[:1])} is no base{hint}", self._path, f"line {at}, record {self._name!r}")
        return len(strange)

    def record(self, sequence: str, unknown: int) -> Record:
        if not sequence:
            raise DataError("the record has no sequence", self._path, self._place)
        return Record(self._name, sequence, self._place, self._description, unknown)


def _pieces(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """A header, or a part of a sequence that may begin and end within a line: its line, its bytes, whether a header."""
    line, at_start, waiting = 1, True, b""
    with _opened(path) as file:
        while True:
            more = _read(file, path, line)
            # Only an unfinished header ever waits, so this joins little.
            block = waiting + more
            begin = 0
            while begin < len(block):
                is_header = block.startswith(b">", begin)
                if is_header and not at_start:
                    raise DataError("a '>' within a line; is a line break missing?", path, f"line {line}")
                end = block.find(b"\n", begin) + 1 if is_header else block.find(b">", begin)
                if end <= 0:
                    if is_header and more:
                        break
                    end = len(block)
                piece = block[begin:end]
                yield line, piece, is_header
                line += piece.count(b"\n")
                at_start = piece.endswith(b"\n")
                begin = end
            waiting = block[begin:]
            if len(waiting) > _LONGEST_HEADER:
                raise DataError(f"a header of more than {_LONGEST_HEADER} bytes; not FASTA", path, f"line {line}")
            if not more:
                return


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"it cannot be opened ({error.strerror})", path) from error
    with file:
        try:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
        except OSError as error:
            raise DataError(f"it cannot be read ({error.strerror})", path) from error
        yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file


def _read(file: BinaryIO, path: Path, line: int) -> bytes:
    try:
        return file.read(_BLOCK)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"damaged or not complete ({error}); get the file again", path, f"after line {line}") from error


def _shown(content: bytes) -> str:
    return repr(content[:12].decode("ascii", "backslashreplace"))

"""FASTA files, plain or compressed by gzip, read one record at a time. Errors name the line.

The reader is ours because no library gives what chromosomes need. dnaio collects the lines of a record and joins them,
so that a chromosome of 27 Mb takes 74 MB at its peak (29 MB here) and twice the time on a plain file; it counts no
lines, and takes FASTA with a '>' inside a line, empty records, proteins and '#' comments. The tests compare this reader
with dnaio on well-formed files.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from paramixer.data.errors import DataError

SUFFIXES = (".fa", ".fasta", ".fna", ".fas", ".ffn")
"""Endings of a FASTA file's name, before an optional .gz."""

_BLOCK = 1 << 20
_LONGEST_HEADER = 1 << 16
_BLANKS = b" \t\r\n"
_BASES = b"ACGTUN"
_AMBIGUOUS = b"RYSWKMBDHV"
_KNOWN = _BLANKS + _BASES + _BASES.lower() + _AMBIGUOUS + _AMBIGUOUS.lower()
# Read as N unless strict: gaps, digits and other letters. The two left out have a meaning in FASTA.
_TOLERATED = bytes(range(33, 127)).translate(None, b">;")
_LETTERS = dict(zip(b"ACGTUacgtu", b"ACGTTACGTT", strict=True))
_TO_BASES = bytes(_LETTERS.get(letter, ord("N")) for letter in range(256))


class Record(NamedTuple):
    """One sequence of a FASTA file."""

    name: str
    """The first word of its header."""
    sequence: str
    """Letters A, C, G, T and N only. U is read as T, and letters for several bases as N."""
    place: str
    """Line and name, for messages."""
    description: str = ""
    """The header after the name."""
    unknown: int = 0
    """How many letters stand for no base and were read as N."""


def is_fasta(path: Path) -> bool:
    """Return whether the file's name is that of a FASTA file."""
    return path.name.lower().removesuffix(".gz").endswith(SUFFIXES)


def read_records(path: Path, strict: bool = False) -> Iterator[Record]:
    """Yield the records of a file. One of them is in memory at a time.

    Args:
        path: plain or compressed by gzip; the content decides.
        strict: refuse letters other than A C G T U N and R Y S W K M B D H V, such as gaps. By default they are read
            as N.

    Raises:
        DataError: the file is not FASTA, is damaged, or has a record without a sequence.
    """
    header: _Header | None = None
    sequence, unknown = "", 0
    for line, piece, is_header in _read_pieces(path):
        if is_header:
            if header is not None:
                yield header.make_record(sequence, unknown)
            header = _Header(path, line, piece)
            sequence, unknown = "", 0
        elif header is not None:
            unknown += header.count_unknown(piece, line, strict)
            # CPython extends a local string in place, so a chromosome is never held twice.
            sequence += piece.translate(_TO_BASES, _BLANKS).decode("ascii")
        elif content := piece.lstrip(_BLANKS):
            hint = "; convert FASTQ to FASTA first" if content.startswith(b"@") else ""
            begin = line + piece[: len(piece) - len(content)].count(b"\n")
            raise DataError(f"not FASTA: it begins with {_quote(content)} instead of '>'{hint}", path, f"line {begin}")
    if header is None:
        raise DataError("the file is empty; is the download complete?", path)
    yield header.make_record(sequence, unknown)


class _Header:
    """The header of a record, and the checks of its sequence."""

    def __init__(self, path: Path, line: int, header: bytes) -> None:
        text = header[1:].rstrip(_BLANKS)
        if not text.isascii():
            raise DataError("the header has bytes that are not ASCII", path, f"line {line}")
        if b"\r" in text:
            raise DataError("lines end in a bare carriage return; convert them to newlines", path, f"line {line}")
        self._name, self._description = [*text.decode("ascii").split(None, 1), "", ""][:2]
        self._path, self._place = path, f"line {line}, record {self._name!r}"

    def count_unknown(self, piece: bytes, line: int, strict: bool) -> int:
        """Return how many letters of a piece stand for no base; those that may not be read as N are an error."""
        unknown = piece.translate(None, _KNOWN)
        if refused := unknown if strict else unknown.translate(None, _TOLERATED):
            hint = "; it is read as N unless strict" if refused[0] in _TOLERATED else ""
            at = line + piece.count(b"\n", 0, piece.index(refused[:1]))
            raise DataError(
                f"{_quote(refused[:1])} is not a base{hint}", self._path, f"line {at}, record {self._name!r}"
            )
        return len(unknown)

    def make_record(self, sequence: str, unknown: int) -> Record:
        if not sequence:
            raise DataError("the record has no sequence", self._path, self._place)
        return Record(self._name, sequence, self._place, self._description, unknown)


def _read_pieces(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (line, bytes, is header) for headers and pieces of sequences, which may begin and end within a line."""
    line, at_start, waiting = 1, True, b""
    with _open(path) as file:
        while True:
            more = _read(file, path, line)
            # Only an unfinished header ever waits, so little is copied here.
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
def _open(path: Path) -> Iterator[BinaryIO]:
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


def _quote(content: bytes) -> str:
    return repr(content[:12].decode("ascii", "backslashreplace"))

"""FASTA files, plain or compressed, read one record at a time. Errors name the line.

The reader is ours because no library gives what chromosomes need. dnaio collects the lines of a record and joins them,
so that a chromosome of 27 Mb takes 74 MB at its peak (29 MB here) and twice the time on a plain file; it counts no
lines, and takes FASTA with a '>' inside a line, empty records, proteins and '#' comments. The tests compare this reader
with dnaio on well-formed files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from paramixer.data.errors import DataError
from paramixer.data.formats import compression

SUFFIXES = (".fa", ".fasta", ".fna", ".fas", ".ffn", ".faa")
"""Endings of a FASTA file's name, before the ending of a compressed file."""

_BLOCK = 1 << 20
_LONGEST_HEADER = 1 << 16
_BLANKS = b" \t\r\n"
_BASES = b"ACGTUN"
_AMBIGUOUS = b"RYSWKMBDHV"
_AMINO = b"ACDEFGHIKLMNPQRSTVWY"
# Letters for several amino acids, rare ones, any, gaps and the end of translation.
_AMINO_RARE = b"BJOUXZ*-"
# Read as unknown unless strict: gaps, digits and other letters. The two left out have a meaning in FASTA.
_TOLERATED = bytes(range(33, 127)).translate(None, b">;")
_LETTERS = dict(zip(b"ACGTUacgtu", b"ACGTTACGTT", strict=True))
# With a smaller share of letters that are bases, sequences are proteins, of whose letters they are a quarter.
_LEAST_BASES = 0.6
_LOOK_AHEAD = 100


class Letters(NamedTuple):
    """What the letters of a file stand for."""

    one: str
    """One of them, for messages."""
    plural: str
    """Several of them."""
    unknown: str
    """What unknown letters are read as."""
    known: bytes
    """Letters, and blanks, that are no fault."""
    table: bytes
    """What every letter is read as."""
    dropped: bytes = _BLANKS
    """What is left out."""


DNA = Letters(
    "a base",
    "bases",
    "N",
    _BLANKS + (_BASES + _AMBIGUOUS).upper() + (_BASES + _AMBIGUOUS).lower(),
    bytes(_LETTERS.get(letter, ord("N")) for letter in range(256)),
)
"""U is read as T, and letters for several bases as N."""
PROTEIN = Letters(
    "an amino acid",
    "amino acids",
    "X",
    _BLANKS + (_AMINO + _AMINO_RARE).upper() + (_AMINO + _AMINO_RARE).lower(),
    bytes(ord(chr(letter).upper()) if chr(letter).upper().encode() in _AMINO else ord("X") for letter in range(128))
    + b"X" * 128,
    # The end of the translation is no letter.
    _BLANKS + b"*",
)
"""The twenty amino acids; all other letters are read as X."""


class Record(NamedTuple):
    """One sequence of a FASTA file."""

    name: str
    """The first word of its header."""
    sequence: str
    """Letters A, C, G, T and N only, or those of the amino acids and X."""
    place: str
    """Line and name, for messages."""
    description: str = ""
    """The header after the name."""
    unknown: int = 0
    """How many letters have no meaning and were read as unknown ones."""


def is_fasta(path: Path) -> bool:
    """Return whether the file's name is that of a FASTA file."""
    return compression.strip_suffix(path.name).endswith(SUFFIXES)


def find_letters(path: Path) -> Letters:
    """Return whether the first records of a file are DNA or proteins."""
    bases = total = 0
    for _, piece, is_header in islice(_read_pieces(path), 2 * _LOOK_AHEAD):
        if not is_header:
            letters = piece[:_BLOCK].translate(None, _BLANKS)
            total += len(letters)
            bases += len(letters) - len(letters.upper().translate(None, _BASES))
    return PROTEIN if bases < _LEAST_BASES * total else DNA


def read_records(path: Path, strict: bool = False, letters: Letters = DNA) -> Iterator[Record]:
    """Yield the records of a file. One of them is in memory at a time.

    Args:
        path: plain or compressed; the content decides.
        strict: refuse letters other than A C G T U N and R Y S W K M B D H V, such as gaps. By default they are read
            as N. Of proteins, those other than the amino acids, B J O U X Z * and -.
        letters: what the letters stand for.

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
            unknown += header.count_unknown(piece, line, strict, letters)
            # CPython extends a local string in place, so a chromosome is never held twice.
            sequence += piece.translate(letters.table, letters.dropped).decode("ascii")
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

    def count_unknown(self, piece: bytes, line: int, strict: bool, letters: Letters) -> int:
        """Return how many letters of a piece have no meaning; those that may not be read as unknown are an error."""
        unknown = piece.translate(None, letters.known)
        if refused := unknown if strict else unknown.translate(None, _TOLERATED):
            hint = f"; it is read as {letters.unknown} unless strict" if refused[0] in _TOLERATED else ""
            at = line + piece.count(b"\n", 0, piece.index(refused[:1]))
            raise DataError(
                f"{_quote(refused[:1])} is not {letters.one}{hint}",
                self._path,
                f"line {at}, record {self._name!r}",
            )
        return len(unknown)

    def make_record(self, sequence: str, unknown: int) -> Record:
        if not sequence:
            raise DataError("the record has no sequence", self._path, self._place)
        return Record(self._name, sequence, self._place, self._description, unknown)


def _read_pieces(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (line, bytes, is header) for headers and pieces of sequences, which may begin and end within a line."""
    line, at_start, waiting = 1, True, b""
    with compression.open_file(path) as file:
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


def _read(file: BinaryIO, path: Path, line: int) -> bytes:
    try:
        return file.read(_BLOCK)
    except OSError as error:
        raise DataError(f"{error}; get the file again", path, f"after line {line}") from error


def _quote(content: bytes) -> str:
    return repr(content[:12].decode("ascii", "backslashreplace"))

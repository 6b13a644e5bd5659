"""Texts with a class each: from folders named for the classes, packed or not, or from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from paramixer.data.errors import DataError
from paramixer.data.formats import class_folders, compression
from paramixer.data.formats.encodings import make_decode_error
from paramixer.data.formats.tabular import tables
from paramixer.data.samples import Sample
from paramixer.data.splits import parse_split

SUFFIXES = (".txt", *(f".txt{suffix}" for suffix in compression.SUFFIXES))
"""Endings of a text file's name."""

# IMDB's folder of reviews without a rating.
_WITHOUT_CLASS = "unsup"


def read_texts(source: Path, text: str, label: str, encoding: str = "utf-8") -> Iterator[Sample]:
    """Yield all texts of a source.

    Args:
        source: a table with these columns, and perhaps the columns split and id; or a folder, .zip, .tar or .tar.gz
            with texts as ``[SPLIT/]CLASS/NAME.txt``.
        text: the column of the texts.
        label: the column of the labels.
        encoding: of text files.
    """
    if tables.is_table(source):
        return _read_table(source, text, label)
    return read_folders(source, encoding)


def _read_table(source: Path, text: str, label: str) -> Iterator[Sample]:
    names = tables.read_names(source)
    optional = [name for name in ("split", "id") if name in names]
    for place, (content, target, *rest) in tables.read(source, [text, label, *optional]):
        if not isinstance(content, str):
            raise DataError(f"column {text!r} holds {type(content).__name__}, not text", place)
        values = dict(zip(optional, rest, strict=True))
        split = parse_split(values["split"], place) if "split" in values else None
        yield Sample(content, str(target), place, split, str(values.get("id", "")))


def read_folders(source: Path, encoding: str) -> Iterator[Sample]:
    """Yield the texts of a folder or archive with a folder for each class."""
    for file in class_folders.walk(source, SUFFIXES):
        if file.label == _WITHOUT_CLASS:
            continue
        text = decode_text(file.read(), encoding, source, file.name)
        yield Sample(text, file.label, f"{source}, {file.name}", file.split, name_text(file.name))


def decode_text(content: bytes, encoding: str, source: Path, name: str) -> str:
    """Return the text of a file, compressed or not, whose name is for messages."""
    try:
        return compression.expand_bytes(content, f"{source}, {name}").decode(encoding)
    except UnicodeDecodeError as error:
        raise make_decode_error(error, source, name) from error


def name_text(name: str) -> str:
    """Return the name of a text without its folders and endings."""
    stem = PurePosixPath(name).name
    return PurePosixPath(stem[: len(compression.strip_suffix(stem))]).stem

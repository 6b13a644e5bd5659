"""Texts with a class each: from folders named for the classes, packed or not, or from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from paramixer.data.errors import DataError
from paramixer.data.formats import archives, tables
from paramixer.data.samples import Sample
from paramixer.data.splits import SPLIT_NAMES, parse_split

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
    return _read_folders(source, encoding)


def _read_table(source: Path, text: str, label: str) -> Iterator[Sample]:
    names = tables.read_names(source)
    optional = [name for name in ("split", "id") if name in names]
    for place, (content, target, *rest) in tables.read(source, [text, label, *optional]):
        if not isinstance(content, str):
            raise DataError(f"column {text!r} holds {type(content).__name__}, not text", place)
        values = dict(zip(optional, rest, strict=True))
        split = parse_split(values["split"], place) if "split" in values else None
        yield Sample(content, str(target), place, split, str(values.get("id", "")))


def _read_folders(source: Path, encoding: str) -> Iterator[Sample]:
    for name, read in archives.walk(source):
        parts = PurePosixPath(name).parts
        if not name.endswith(".txt") or len(parts) < 2 or parts[-2] == _WITHOUT_CLASS:
            continue
        split = SPLIT_NAMES.get(parts[-3].lower()) if len(parts) > 2 else None
        if parts[-2].lower() in SPLIT_NAMES:
            # A list beside the folders of the classes, such as IMDB's list of addresses.
            continue
        try:
            text = read().decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"byte {error.start} is not {encoding}; give the right encoding", source, name) from error
        yield Sample(text, parts[-2], f"{source}, {name}", split, PurePosixPath(name).stem)

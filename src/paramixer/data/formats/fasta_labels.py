"""Labels of FASTA records: in their headers, in a table beside them, or in the names of the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats.compression import strip_suffix
from paramixer.data.formats.fasta import Record
from paramixer.data.formats.tabular import tables
from paramixer.data.formats.tabular.cells import parse_label
from paramixer.data.formats.tabular.columns import join_names
from paramixer.data.splits import names_split

_KEYS = ("label", "class", "target", "y")

Labeler = Callable[[Record], tuple[str | float, str | None]]
"""Returns the label of a record, and its split if that is known."""
Finder = Callable[[str], str | None]
"""Returns the label in a header, if it has one."""


def make_header_labeler(source: Path, label: str | None, split: str | None) -> Labeler:
    """Return a function that finds label and split in a record's header.

    Args:
        source: the file, for messages.
        label: the key of ``key=value``; ``header:2``, the second word of the header; ``header:last``, its last word;
            ``header:before:|``, what stands before the first of these characters; or a regular expression with one
            group. None for a key such as label or class.
        split: the key of the split.
    """
    finders = [_make_finder(label, source)] if label is not None else [_search(_compile_key(key)) for key in _KEYS]

    def find_label(record: Record) -> tuple[str | float, str | None]:
        header = get_header(record)
        place = f"{source}, {record.place}"
        matches = [found for finder in finders if (found := finder(header))]
        if not matches:
            wanted = f"--label {label}" if label is not None else f"{_KEYS[0]}=..."
            keys = list(dict.fromkeys(_ANY_KEY.findall(header)))
            seen = f", whose keys are {join_names(keys)}" if keys else ""
            raise DataError(
                f"no label ({wanted}) in the header {header[:60]!r}{seen}; name it with --label "
                f"{keys[0] if keys else 'KEY'}, --label header:2 for its second word or a regular expression with one "
                "group, give a table of id and label with --labels, or a file for each class with --label file",
                place,
            )
        return matches[0], _find_split(split, header, place)

    return find_label


def get_header(record: Record) -> str:
    """Return the whole header of a record."""
    return f"{record.name} {record.description}".strip()


def has_label(record: Record) -> bool:
    """Return whether a label is found in the header of a record without being told where."""
    return any(_search(_compile_key(key))(get_header(record)) for key in _KEYS)


def name_splits(records: Iterable[Record]) -> bool:
    """Return whether the headers of records have a key ``split``, and any of them names a split.

    A header that then does not is refused when it is read.
    """
    pattern = _compile_key("split")
    for record in records:
        match = pattern.search(get_header(record))
        # Without the key in the first header no other is looked at.
        if match is None or names_split(match.group(1)):
            return match is not None
    return False


def make_file_labeler(path: Path, split: str | None) -> Labeler:
    """Return a function that takes the file's name, without its ending, for the label of every record.

    Args:
        path: the file.
        split: the key of the split in the headers.
    """
    label = strip_suffix(path.name)
    label = path.name[: len(label)].rpartition(".")[0]

    def find_label(record: Record) -> tuple[str | float, str | None]:
        return label, _find_split(split, get_header(record), f"{path}, {record.place}")

    return find_label


def _find_split(split: str | None, header: str, place: str) -> str | None:
    if split is None:
        return None
    match = _compile_key(split).search(header)
    if match is None:
        raise DataError(f"no split ({split}=...) in the header {header[:60]!r}", place)
    return match.group(1)


def _make_finder(label: str, source: Path) -> Finder:
    kind, _, where = label.partition(":")
    if kind == "header":
        return _make_word_finder(label, where, source)
    if "(" not in label:
        return _search(_compile_key(label))
    try:
        pattern = re.compile(label)
    except re.error as error:
        raise DataError(f"--label {label!r} is not a regular expression: {error}", source) from error
    if pattern.groups != 1:
        raise DataError(f"--label {label!r} has {pattern.groups} groups; one must hold the label", source)
    return _search(pattern)


def _make_word_finder(label: str, where: str, source: Path) -> Finder:
    if where == "last":
        return lambda header: header.split()[-1] if header.split() else None
    if where.isdecimal() and int(where) > 0:
        number = int(where)
        return lambda header: words[number - 1] if len(words := header.split()) >= number else None
    before, _, mark = where.partition(":")
    if before == "before" and mark:
        return lambda header: header.partition(mark)[0].strip() if mark in header else None
    raise DataError(f"--label {label!r}; write header:2 for the second word, header:last or header:before:|", source)


def _search(pattern: re.Pattern[str]) -> Finder:
    def find(header: str) -> str | None:
        match = pattern.search(header)
        return match.group(1) if match else None

    return find


_ANY_KEY = re.compile(r"(?:^|[\s|;,\[])([^\W\d]\w*)[=:]\s*[^\s|;,\]]")


def _compile_key(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[\s|;,\[]){re.escape(key)}[=:]\s*([^\s|;,\]]+)")


def make_table_labeler(labels: Path, id: str, label: str, split: str | None) -> Labeler:
    """Return a function that finds label and split of a record in a table; a column named split is used unasked."""
    if split is None and "split" in tables.read_names(labels):
        split = "split"
    wanted = [id, label] if split is None else [id, label, split]
    known: dict[str, tuple[str | float, str | None]] = {}
    for place, (name, value, *rest) in tables.read(labels, wanted):
        if str(name) in known:
            raise DataError(f"{name!r} is in it twice", place)
        known[str(name)] = parse_label(value, label, place), str(rest[0]) if rest else None

    def find_label(record: Record) -> tuple[str | float, str | None]:
        if record.name not in known:
            raise DataError(f"there is no label for {record.name!r}, at {record.place} of the FASTA file", labels)
        return known[record.name]

    return find_label

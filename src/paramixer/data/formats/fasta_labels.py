"""Labels of FASTA records: in their headers, or in a table beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import tables
from paramixer.data.formats.cells import parse_label
from paramixer.data.formats.fasta import Record

_KEYS = ("label", "class", "target", "y")

Labeler = Callable[[Record], tuple[str | float, str | None]]
"""Returns the label of a record, and its split if that is known."""


def make_header_labeler(source: Path, label: str | None, split: str | None) -> Labeler:
    """Return a function that finds label and split in a record's header."""
    patterns = [_compile_label(label, source)] if label is not None else [_compile_key(key) for key in _KEYS]

    def find_label(record: Record) -> tuple[str | float, str | None]:
        header = f"{record.name} {record.description}".strip()
        place = f"{source}, {record.place}"
        matches = [match.group(1) for pattern in patterns if (match := pattern.search(header)) and match.group(1)]
        if not matches:
            wanted = f"--label {label}" if label is not None else f"{_KEYS[0]}=..."
            raise DataError(
                f"no label ({wanted}) in the header {header[:60]!r}; name it with --label KEY or a regular "
                "expression with one group, or give a table of id and label with --labels",
                place,
            )
        match = None if split is None else _compile_key(split).search(header)
        if split is not None and match is None:
            raise DataError(f"no split ({split}=...) in the header {header[:60]!r}", place)
        return matches[0], match and match.group(1)

    return find_label


def _compile_label(label: str, source: Path) -> re.Pattern[str]:
    if "(" not in label:
        return _compile_key(label)
    try:
        pattern = re.compile(label)
    except re.error as error:
        raise DataError(f"--label {label!r} is not a regular expression: {error}", source) from error
    if pattern.groups != 1:
        raise DataError(f"--label {label!r} has {pattern.groups} groups; one must hold the label", source)
    return pattern


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

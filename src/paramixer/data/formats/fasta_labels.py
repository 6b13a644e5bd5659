"""Labels of FASTA records: in their headers, or in a table beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import tables
from paramixer.data.formats.fasta import Record
from paramixer.data.formats.labels import of as label_of

_KEYS = ("label", "class", "target", "y")

Labelled = Callable[[Record], tuple[str | float, str | None]]
"""The label of a record, and its split where that is known."""


def in_header(source: Path, label: str | None, split: str | None) -> Labelled:
    """Finds label and split in a record's header."""
    patterns = [_pattern(label, source)] if label is not None else [_key(key) for key in _KEYS]

    def labelled(record: Record) -> tuple[str | float, str | None]:
        header = f"{record.name} {record.description}".strip()
        place = f"{source}, {record.place}"
        found = [match.group(1) for pattern in patterns if (match := pattern.search(header)) and match.group(1)]
        if not found:
            wanted = f"--label {label}" if label is not None else f"{_KEYS[0]}=..."
            raise DataError(
                f"no label ({wanted}) in the header {header[:60]!r}; say where it is with --label KEY or a regular "
                "expression with one group, or give a table of id and label with --labels",
                place,
            )
        match = None if split is None else _key(split).search(header)
        if split is not None and match is None:
            raise DataError(f"no split ({split}=...) in the header {header[:60]!r}", place)
        return found[0], match and match.group(1)

    return labelled


def _pattern(label: str, source: Path) -> re.Pattern[str]:
    if "(" not in label:
        return _key(label)
    try:
        pattern = re.compile(label)
    except re.error as error:
        raise DataError(f"--label {label!r} is no regular expression: {error}", source) from error
    if pattern.groups != 1:
        raise DataError(f"--label {label!r} has {pattern.groups} groups; one must hold the label", source)
    return pattern


def _key(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[\s|;,\[]){re.escape(key)}[=:]\s*([^\s|;,\]]+)")


def listed(labels: Path, id: str, label: str, split: str | None) -> Labelled:
    """Finds label and split of a record in a table with these columns; a column named split need not be named."""
    if split is None and "split" in tables.columns(labels):
        split = "split"
    wanted = [id, label] if split is None else [id, label, split]
    known: dict[str, tuple[str | float, str | None]] = {}
    for place, (name, found, *rest) in tables.read(labels, wanted):
        if str(name) in known:
            raise DataError(f"{name!r} stands in it twice", place)
        known[str(name)] = label_of(found, label, place), str(rest[0]) if rest else None

    def labelled(record: Record) -> tuple[str | float, str | None]:
        if record.name not in known:
            raise DataError(f"there is no label for {record.name!r}, which {record.place} has", labels)
        return known[record.name]

    return labelled

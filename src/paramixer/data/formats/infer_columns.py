"""Which column of a table is which, where the user does not say."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

from paramixer.data.errors import DataError
from paramixer.data.formats import tables
from paramixer.data.formats.texts import SPLIT_NAMES

# The first of these that a table has, and has once, is taken.
_TEXTS = (
    ("text", "sequence", "seq"),
    ("review", "sentence", "document", "dna", "rna", "protein", "values", "signal", "series"),
    ("content", "comment", "body", "article", "input", "inputs", "x", "data"),
)
_LABELS = (
    ("label", "class", "target", "y"),
    ("labels", "value", "stars", "score", "rating", "sentiment", "category", "output"),
)
_LOOKED_AT = 100
# Texts shorter than this on average are names, codes or labels.
_SHORT = 20


class Columns(NamedTuple):
    """The columns that are read."""

    text: str
    label: str
    split: str | None
    id: str | None


def choose(path: Path, text: str | None, label: str | None, split: str | None, id: str | None) -> Columns:
    """The columns that were named, and guesses for the others.

    Raises:
        DataError: a guess could be wrong; the message names the columns and the flag that helps.
    """
    said = [name for name in (text, label, split, id) if name is not None]
    # Names that are not there are refused before anything is guessed from them.
    next(tables.read(path, said, nulls=True))
    names = [name for name in tables.columns(path) if name not in said]
    if id is None:
        id = next((name for name in names if name.lower() == "id"), None)
    if split is None:
        split = next((name for name in names if name.lower() == "split" and _names_splits(path, name)), None)
    rest = [name for name in names if name not in (split, id)]
    if text is None:
        text = _named(path, rest, _TEXTS, "texts or sequences", "--text") or _only_long(path, rest)
        rest.remove(text)
    if label is None:
        label = _named(path, rest, _LABELS, "labels or values", "--label")
        if label is None:
            if len(rest) != 1:
                raise _unclear(path, rest, "labels or values", "--label")
            label = rest[0]
    return Columns(text, label, split, id)


def _named(path: Path, names: list[str], tiers: tuple[tuple[str, ...], ...], what: str, flag: str) -> str | None:
    for tier in tiers:
        found = [name for name in names if name.lower() in tier]
        if len(found) > 1:
            raise _unclear(path, found, what, flag)
        if found:
            return found[0]
    return None


def _only_long(path: Path, names: list[str]) -> str:
    found = [name for name in names if _is_long(path, name)]
    if len(found) != 1:
        raise _unclear(path, found or names, "texts or sequences", "--text")
    return found[0]


def _is_long(path: Path, name: str) -> bool:
    values = _first(path, name)
    lengths = [len(value) for value in values if isinstance(value, str | list)]
    if len(lengths) < len(values) or not values:
        return False
    return isinstance(values[0], list) or sum(lengths) >= _SHORT * len(lengths)


def _names_splits(path: Path, name: str) -> bool:
    values = _first(path, name)
    return bool(values) and all(str(value).lower() in SPLIT_NAMES for value in values)


def _first(path: Path, name: str) -> list[object]:
    rows = islice(tables.read(path, [name], nulls=True), _LOOKED_AT)
    return [value for _, (value,) in rows if value is not None]


def _unclear(path: Path, names: list[str], what: str, flag: str) -> DataError:
    there = tables.listed(names) or "none left"
    return DataError(f"which column holds the {what}? It could be {there}; name it with {flag}", path)

"""Labels, values and splits as they stand in a table."""

from __future__ import annotations

from paramixer.data.errors import DataError
from paramixer.data.formats.texts import SPLIT_NAMES


def of(found: object, column: str, place: str) -> str | float:
    """The label, or the value, in this column."""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, str | float):
        return found
    if isinstance(found, int):
        # A whole number beyond every float is told from the text of it.
        return found if abs(found) < 2**63 else str(found)
    raise DataError(f"{column!r} holds {kind_of(found)}; wanted is a label or a number", place)


def kind_of(found: object) -> str:
    """What it is, for messages."""
    return f"a value of type {type(found).__name__}"


def split_of(found: object, place: str) -> str:
    """train, validation or test."""
    split = SPLIT_NAMES.get(str(found).strip().lower())
    if split is None:
        raise DataError(f"split {str(found)!r}; wanted is train, validation or test", place)
    return split

"""Names of a table's columns, and the errors that every kind of table shares."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from paramixer.data.errors import DataError


def find_columns(wanted: Sequence[str], names: Sequence[str], path: Path, place: str | None = None) -> list[int]:
    """Return the indices of the wanted columns.

    Raises:
        DataError: a column is missing or there are several of its name.
    """
    for name in wanted:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise DataError(f"there is no column {name!r}; there are {join_names(names)}{hint}", path, place)
        if names.count(name) > 1:
            raise DataError(f"there are {names.count(name)} columns {name!r}; rename one", path, place)
    return [names.index(name) for name in wanted]


def join_names(names: Sequence[str]) -> str:
    """Return names for a message. Many or long ones, as a damaged file may have, are cut."""
    shortened = [name if len(name) <= 40 else f"{name[:40]}..." for name in names[:20]]
    return ", ".join(shortened) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def make_open_error(path: Path, error: OSError) -> DataError:
    """Return the error for a file that cannot be opened."""
    return DataError("there is no such file" if not path.exists() else f"it cannot be opened: {error.strerror}", path)

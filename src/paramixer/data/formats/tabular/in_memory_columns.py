"""Samples as people have them in memory: lists, numpy arrays, and columns of pandas, polars and Arrow.

None of these packages is imported: a column is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from paramixer.data.errors import DataError

_TO_LIST = ("to_pylist", "to_list", "tolist")
# pandas' NA and NaT, which compare with nothing.
_MISSING = ("NAType", "NaTType")


def read_column(samples: Any) -> Any:
    """Return a column of texts or sequences as a list.

    Tables of numbers, which scikit-learn reads by itself, and everything else are returned as they are.

    Args:
        samples: a list or tuple, a numpy array, a column, or a table with a single column.
    """
    if isinstance(samples, str | bytes):
        raise DataError("give a list of samples, not one text")
    if isinstance(samples, np.ndarray):
        return _read_array(samples)
    if _is_table(samples):
        return _read_table(samples)
    values = _to_list(samples)
    return values if values is not None and _has_samples(values) else samples


def list_samples(samples: Iterable[Any]) -> list[Any]:
    """Return every sample of a column, a table whose rows are sequences of numbers, or any iterable."""
    column = read_column(samples)
    if isinstance(column, list):
        return column
    return list(np.asarray(column)) if _is_table(column) else list(column)


def refuse_missing(values: Iterable[Any], what: str = "sample", labels: Sequence[Any] | None = None) -> None:
    """Raise a DataError that names the first value that is None, NaN, NA or NaT.

    Args:
        values: samples or targets.
        what: one of them, for the message.
        labels: the names of the rows, where they may differ from their numbers.
    """
    for row, value in enumerate(values):
        if is_missing(value):
            raise DataError(
                f"{what} {name_row(row, labels)} is {value}, a missing value; fill it, or leave the row out"
            )


def name_row(row: int, labels: Sequence[Any] | None) -> str:
    """Return the number of a row, with its name where that differs."""
    return str(row) if labels is None or labels[row] == row else f"{row} (index {labels[row]!r})"


def find_labels(samples: Any) -> list[Any] | None:
    """Return the names that pandas gives to rows; None for anything else."""
    index = getattr(samples, "index", None)
    return None if index is None or callable(index) else _to_list(index)


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _is_table(samples: Any) -> bool:
    return hasattr(samples, "columns") and len(getattr(samples, "shape", ())) == 2


def _read_table(table: Any) -> Any:
    """Return the only column of a table as a list, or a table of numbers as it is."""
    count = table.shape[1]
    if count == 1:
        values = _to_list(_pick_column(table, 0))
        return values if values is not None and _has_samples(values) else table
    for number, name in enumerate(_column_names(table)):
        column = _pick_column(table, number)
        if not _is_numeric(column) and any(isinstance(value, str) for value in _to_list(column) or ()):
            raise DataError(f"a table of {count} columns, with texts in {name!r}; give one column, such as X[{name!r}]")
    return table


def _pick_column(table: Any, number: int) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[:, number]
    return table.to_series(number) if hasattr(table, "to_series") else table.column(number)


def _column_names(table: Any) -> list[Any]:
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def _is_numeric(column: Any) -> bool:
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    return kind is not None and kind in "biufc"


def _read_array(array: np.ndarray) -> Any:
    if array.dtype.kind not in "OUT":
        return array
    # A column of one text per row, as scikit-learn's transformers give it.
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    values = list(flat) if flat.ndim == 1 else []
    return [str(value) if isinstance(value, str) else value for value in values] if _has_samples(values) else array


def _to_list(values: Any) -> list[Any] | None:
    """Return a list of a list or tuple, or of a column; None for anything else."""
    if isinstance(values, list | tuple):
        return list(values)
    method = next((getattr(values, name) for name in _TO_LIST if hasattr(values, name)), None)
    listed = method() if method is not None and not isinstance(values, np.generic) else None
    return listed if isinstance(listed, list) else None


def _has_samples(values: list[Any]) -> bool:
    """Return whether any of the values is a text or a sequence; a column of single numbers has none."""
    return any(isinstance(value, str | bytes) or hasattr(value, "__len__") for value in values)

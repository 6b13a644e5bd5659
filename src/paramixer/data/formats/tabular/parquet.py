"""Parquet row by row. Memory is bounded by a batch of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats.tabular.columns import find_columns, make_open_error
from paramixer.extras import needed_for

with needed_for("parquet"):
    import pyarrow as pa
    from pyarrow import parquet

# Rows per batch; with rows of 32 768 letters a batch takes 4 MB.
_BATCH_ROWS = 128
UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, OverflowError, LookupError, MemoryError)
"""Errors of pyarrow for files that are damaged."""


def read_rows(path: Path, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its values in the wanted columns; null is an error unless ``nulls``."""
    with _open(path) as file:
        find_columns(wanted, _read_names(file, path), path)
        number = 0
        for rows in _read_batches(file, path, wanted):
            for row in rows:
                number += 1
                if None in row and not nulls:
                    raise DataError(f"null in {wanted[row.index(None)]!r}", path, f"row {number}")
                yield f"{path}, row {number}", row
    if number == 0:
        raise DataError("there is not a single row in it", path)


def _open(path: Path) -> parquet.ParquetFile:
    try:
        # With a buffer, a column is read in pieces. By default a whole row group, perhaps the whole file, is held.
        return parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except FileNotFoundError as error:
        raise make_open_error(path, error) from error
    except UNREADABLE as error:
        what = "the file is empty" if path.is_file() and not path.stat().st_size else f"not a parquet file: {error}"
        raise DataError(what, path) from error


def read_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    with _open(path) as file:
        return _read_names(file, path)


def _read_names(file: parquet.ParquetFile, path: Path) -> list[str]:
    try:
        return [str(name) for name in file.schema_arrow.names]
    except UNREADABLE as error:
        raise DataError(f"its columns cannot be read: {error}", path) from error


def _read_batches(
    file: parquet.ParquetFile, path: Path, wanted: Sequence[str]
) -> Iterator[Iterator[tuple[object, ...]]]:
    """Yield the rows of each batch."""
    number = 0
    try:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(wanted), use_threads=False):
            columns = [batch.column(name) for name in wanted]
            rows = zip(*(read_values(column, path, number) for column in columns), strict=True)
            yield rows if columns else iter([()] * batch.num_rows)
            number += batch.num_rows
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"reading stopped: {error}", path, f"row {number + 1}") from error


def read_values(column: pa.Array, path: Path, before: int) -> list[object]:
    """Return the values of a column as Python's; ``before`` is how many rows came before it, for messages."""
    try:
        return list(column.to_pylist())
    except UNREADABLE:
        for number, value in enumerate(column, before + 1):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                raise DataError(f"not UTF-8: {error.reason}", path, f"row {number}") from error
            except UNREADABLE as error:
                raise DataError(f"a value that cannot be read: {error}", path, f"row {number}") from error
        raise

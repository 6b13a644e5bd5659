"""Tables row by row: csv, tsv and JSON lines, plain or compressed by gzip, and parquet.

Every fault of a file is a :class:`DataError` that names the file and the line or row. Memory is bounded by the longest
row (in parquet by a batch of rows), not by the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import text_tables

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_TEXTS = (*_DELIMITERS, *_JSON_LINES)
_PARQUET = ".parquet"


def is_table(path: Path) -> bool:
    """Return whether the file's name is that of a table."""
    return _find_kind(path) is not None


def read_names(path: Path) -> list[str]:
    """Return the names of the columns; of JSON lines, those of the first line."""
    kind = _require_kind(path)
    if kind == _PARQUET:
        # Only parquet needs pyarrow.
        from paramixer.data.formats import parquet

        return parquet.read_names(path)
    if kind in _JSON_LINES:
        return text_tables.read_json_names(path)
    return text_tables.read_delimited_names(path, _DELIMITERS[kind])


def read(path: Path, wanted: Sequence[str], nulls: bool = False) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place, for messages, and its values in the wanted columns.

    The place is "FILE, line 17", the line where the row begins, or "FILE, row 17" in parquet, both counted from 1.
    In csv and tsv every value is a text. In JSON lines and parquet it has its own type, and null is an error unless
    ``nulls``. Fields of csv and tsv may be in double quotes, inside which quotes are doubled and lines may end.
    """
    kind = _require_kind(path)
    if kind == _PARQUET:
        from paramixer.data.formats import parquet

        return parquet.read_rows(path, wanted, nulls)
    if kind in _JSON_LINES:
        return text_tables.read_json_lines(path, wanted, nulls)
    return text_tables.read_delimited(path, wanted, _DELIMITERS[kind])


def _find_kind(path: Path) -> str | None:
    name = path.name.lower()
    if name.endswith(_PARQUET):
        return _PARQUET
    return next((suffix for suffix in _TEXTS if name.endswith((suffix, f"{suffix}.gz"))), None)


def _require_kind(path: Path) -> str:
    kind = _find_kind(path)
    if kind is None:
        raise DataError(f"a table is named {', '.join(_TEXTS)} (these also with .gz) or {_PARQUET}", path)
    return kind

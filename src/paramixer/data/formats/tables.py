"""Tables row by row: csv, tsv and JSON lines, packed by gzip or not, and parquet.

Whatever is wrong with a file is a :class:`DataError` that names the file and the line or row. Memory is bounded by the
longest row (in parquet by a batch of rows), not by the file.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from paramixer.data.errors import DataError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINES_OF_JSON = (".jsonl", ".ndjson")
_TEXTS = (*_DELIMITERS, *_LINES_OF_JSON)
# A line or a quoted field that is longer than this is damage, and would fill the memory.
_LONGEST = 2**31
# A batch of parquet rows is held at once; rows of 32 768 letters make it 4 MB.
_BATCH_ROWS = 128
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, OverflowError, LookupError, MemoryError)


def is_table(path: Path) -> bool:
    """Whether the name says that it is one."""
    return _kind(path) is not None


def columns(path: Path) -> list[str]:
    """Names of the columns; of JSON lines, the names in the first one."""
    kind = _kind(path)
    if kind == ".parquet":
        with _opened_parquet(path) as file:
            return _names(file, path)
    if kind in _LINES_OF_JSON:
        for _, row in _objects(path):
            return list(row)
    else:
        for _, fields in _records(path, _delimiter(path)):
            return _header(fields)
    raise DataError("the file is empty", path)


def read(path: Path, wanted: Sequence[str], nulls: bool = False) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Where each row stands, for messages, and what it has in the wanted columns.

    The place is "FILE, line 17", the line where the row begins, or "FILE, row 17" in parquet, both counted from 1.
    In csv and tsv every value is a text; in JSON lines and parquet it is what it is, but null is an error unless
    ``nulls``. Fields of csv and tsv may stand in double quotes, in which quotes are written twice and lines may end.
    """
    kind = _kind(path)
    if kind == ".parquet":
        return _read_parquet(path, wanted, nulls)
    if kind in _LINES_OF_JSON:
        return _read_json(path, wanted, nulls)
    return _read_delimited(path, wanted, _delimiter(path))


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    if name.endswith(".parquet"):
        return ".parquet"
    return next((suffix for suffix in _TEXTS if name.endswith((suffix, f"{suffix}.gz"))), None)


def _delimiter(path: Path) -> str:
    kind = _kind(path)
    if kind is None:
        raise DataError(f"a table is named {', '.join(_TEXTS)} (these also with .gz) or .parquet", path)
    return _DELIMITERS[kind]


def _read_delimited(path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    records = _records(path, delimiter)
    try:
        names = _header(next(records)[1])
    except StopIteration:
        raise DataError("the file is empty", path) from None
    places = _found(wanted, names, path)
    number = None
    for number, fields in records:
        if len(fields) != len(names):
            raise DataError(
                f"{len(fields)} fields, where the header has {len(names)} ({listed(names)})", path, f"line {number}"
            )
        yield f"{path}, line {number}", tuple([fields[place] for place in places])
    if number is None:
        raise DataError("there is a header and not a single row", path)


def _header(fields: list[str]) -> list[str]:
    return [name.strip() for name in fields]


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each record, and the line where it begins. Empty lines are no records.

    The standard library's reader is not used because it limits the length of fields by one number for the whole
    process, and passes over a quote that never ends unless it is also strict elsewhere.
    """
    fields: list[str] = []
    quoted: list[str] | None = None
    begin = size = 0
    for number, line in _lines(path):
        text = line.rstrip("\r\n")
        if quoted is None:
            if '"' not in text:
                if text:
                    yield number, text.split(delimiter)
                continue
            begin, size, fields = number, 0, []
        at = 0
        while at <= len(text):
            if quoted is None:
                if not text.startswith('"', at):
                    end = text.find(delimiter, at)
                    end = len(text) if end < 0 else end
                    fields.append(text[at:end])
                    at = end + 1
                    continue
                quoted = []
                at += 1
            end = text.find('"', at)
            if end < 0:
                quoted.append(line[at:])
                break
            quoted.append(text[at:end])
            at = end + 1
            if text.startswith('"', at):
                quoted.append('"')
                at += 1
            elif at < len(text) and text[at] != delimiter:
                raise DataError(
                    f"{text[at]!r} after the end of a quoted field; quotes inside one are written twice",
                    path,
                    f"line {number}",
                )
            else:
                fields.append("".join(quoted))
                quoted = None
                at += 1
        size += len(line)
        if quoted is None:
            yield begin, fields
        elif size > _LONGEST:
            break
    if quoted is not None:
        raise DataError(
            "a quoted field begins here and never ends; quotes inside one are written twice", path, f"line {begin}"
        )


def _read_json(path: Path, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    number = None
    for number, row in _objects(path):
        try:
            values = tuple([row[name] for name in wanted])
        except KeyError:
            _found(wanted, list(row), path, f"line {number}")
            raise
        if None in values and not nulls:
            raise DataError(f"null in {wanted[values.index(None)]!r}", path, f"line {number}")
        yield f"{path}, line {number}", values
    if number is None:
        raise DataError("the file is empty", path)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"this is no JSON: {error}", path, f"line {number}") from error
        if not isinstance(row, dict):
            raise DataError(f"a JSON object is wanted, this is a {type(row).__name__}", path, f"line {number}")
        # An escape may name half of a surrogate pair, which is no character and cannot be written again.
        if "\\u" in line and not _encodes(row):
            raise DataError("an escape \\uD800 to \\uDFFF that is half of a pair", path, f"line {number}")
        yield number, row


def _encodes(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their ends and their numbers from 1 on; only a line feed ends one."""
    number = 0
    with _opened(path) as file:
        lines = iter(partial(file.readline, _LONGEST), b"")
        while True:
            number += 1
            try:
                line = next(lines, None)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"it cannot be read on: {error}; get the file anew", path, f"line {number}") from error
            if line is None:
                return
            if len(line) == _LONGEST:
                raise DataError(f"a line of {_LONGEST} bytes or more", path, f"line {number}")
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"this is not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); save it as UTF-8",
                    path,
                    f"line {number}",
                ) from error
            yield number, text


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix.lower() == ".gz":
            # The buffer makes reading lines fast; the gzip file's own readline is Python code.
            return io.BufferedReader(gzip.open(path, "rb"), 1 << 20)
        return path.open("rb", buffering=1 << 20)
    except OSError as error:
        raise _not_opened(path, error) from error


def _not_opened(path: Path, error: OSError) -> DataError:
    return DataError("there is no such file" if not path.exists() else f"it cannot be opened: {error.strerror}", path)


def _read_parquet(path: Path, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    with _opened_parquet(path) as file:
        _found(wanted, _names(file, path), path)
        number = 0
        for values in _batches(file, path, wanted):
            for row in values:
                number += 1
                if None in row and not nulls:
                    raise DataError(f"null in {wanted[row.index(None)]!r}", path, f"row {number}")
                yield f"{path}, row {number}", row
    if number == 0:
        raise DataError("there is not a single row in it", path)


def _opened_parquet(path: Path) -> parquet.ParquetFile:
    try:
        # A buffer reads a column piece by piece, where the default holds all of a row group, which may be the file.
        return parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except FileNotFoundError as error:
        raise _not_opened(path, error) from error
    except _UNREADABLE as error:
        what = "the file is empty" if path.is_file() and not path.stat().st_size else f"this is no parquet: {error}"
        raise DataError(what, path) from error


def _names(file: parquet.ParquetFile, path: Path) -> list[str]:
    try:
        return [str(name) for name in file.schema_arrow.names]
    except _UNREADABLE as error:
        raise DataError(f"its columns cannot be read: {error}", path) from error


def _batches(file: parquet.ParquetFile, path: Path, wanted: Sequence[str]) -> Iterator[Iterator[tuple[object, ...]]]:
    """The rows of each batch."""
    number = 0
    try:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(wanted), use_threads=False):
            columns = [batch.column(name) for name in wanted]
            rows = zip(*(_values(column, path, number) for column in columns), strict=True)
            yield rows if columns else iter([()] * batch.num_rows)
            number += batch.num_rows
    except DataError:
        raise
    except _UNREADABLE as error:
        raise DataError(f"it cannot be read on: {error}", path, f"row {number + 1}") from error


def _values(column: pa.Array, path: Path, before: int) -> list[object]:
    try:
        return list(column.to_pylist())
    except _UNREADABLE:
        for number, value in enumerate(column, before + 1):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                raise DataError(f"this is not UTF-8: {error.reason}", path, f"row {number}") from error
            except _UNREADABLE as error:
                raise DataError(f"a value that cannot be read: {error}", path, f"row {number}") from error
        raise


def _found(wanted: Sequence[str], names: Sequence[str], path: Path, place: str | None = None) -> list[int]:
    """Where the wanted columns stand."""
    for name in wanted:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise DataError(f"there is no column {name!r}; there are {listed(names)}{hint}", path, place)
        if names.count(name) > 1:
            raise DataError(f"there are {names.count(name)} columns {name!r}", path, place)
    return [names.index(name) for name in wanted]


def listed(names: Sequence[str]) -> str:
    """Names for a message, which a damaged file must not fill."""
    shown = [name if len(name) <= 40 else f"{name[:40]}..." for name in names[:20]]
    return ", ".join(shown) + (f" and {len(names) - 20} more" if len(names) > 20 else "")

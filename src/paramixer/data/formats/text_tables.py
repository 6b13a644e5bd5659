"""csv, tsv and JSON lines row by row, plain or compressed by gzip. Memory is bounded by the longest row."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from paramixer.data.errors import DataError
from paramixer.data.formats.columns import find_columns, join_names, make_open_error

# A longer line or quoted field is damage, and would fill the memory.
_LONGEST = 2**31


def read_delimited(path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its texts in the wanted columns."""
    records = _read_records(path, delimiter)
    try:
        names = _clean_names(next(records)[1])
    except StopIteration:
        raise DataError("the file is empty", path) from None
    places = find_columns(wanted, names, path)
    number = None
    for number, fields in records:
        if len(fields) != len(names):
            raise DataError(
                f"{len(fields)} fields, where the header has {len(names)} ({join_names(names)})", path, f"line {number}"
            )
        yield f"{path}, line {number}", tuple([fields[place] for place in places])
    if number is None:
        raise DataError("there is a header and not a single row", path)


def read_delimited_names(path: Path, delimiter: str) -> list[str]:
    """Return the names in the header."""
    for _, fields in _read_records(path, delimiter):
        return _clean_names(fields)
    raise DataError("the file is empty", path)


def _clean_names(fields: list[str]) -> list[str]:
    return [name.strip() for name in fields]


def _read_records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each record begins, and its fields. Empty lines are skipped.

    The standard library's reader is not used: it limits the length of fields for the whole process, and ignores a
    quote that never ends unless it is also strict about everything else.
    """
    fields: list[str] = []
    quoted: list[str] | None = None
    begin = size = 0
    for number, line in _read_lines(path):
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
                    f"{text[at]!r} after the end of a quoted field; double the quotes inside a field",
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
            "a quoted field begins here and never ends; double the quotes inside a field", path, f"line {begin}"
        )


def read_json_lines(path: Path, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its values in the wanted columns; null is an error unless ``nulls``."""
    number = None
    for number, row in _read_objects(path):
        try:
            values = tuple([row[name] for name in wanted])
        except KeyError:
            find_columns(wanted, list(row), path, f"line {number}")
            raise
        if None in values and not nulls:
            raise DataError(f"null in {wanted[values.index(None)]!r}", path, f"line {number}")
        yield f"{path}, line {number}", values
    if number is None:
        raise DataError("the file is empty", path)


def read_json_names(path: Path) -> list[str]:
    """Return the names in the first line."""
    for _, row in _read_objects(path):
        return list(row)
    raise DataError("the file is empty", path)


def _read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _read_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON: {error}", path, f"line {number}") from error
        if not isinstance(row, dict):
            raise DataError(f"expected a JSON object, got a {type(row).__name__}", path, f"line {number}")
        # Half of a surrogate pair is not a character and cannot be encoded.
        if "\\u" in line and not _can_encode(row):
            raise DataError("an escape \\uD800 to \\uDFFF that is half of a surrogate pair", path, f"line {number}")
        yield number, row


def _can_encode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and lines with their ends. Only a line feed ends a line."""
    number = 0
    with _open(path) as file:
        lines = iter(partial(file.readline, _LONGEST), b"")
        while True:
            number += 1
            try:
                line = next(lines, None)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"reading stopped: {error}; get the file again", path, f"line {number}") from error
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
                    f"not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); save it as UTF-8",
                    path,
                    f"line {number}",
                ) from error
            yield number, text


def _open(path: Path) -> BinaryIO:
    try:
        if path.suffix.lower() == ".gz":
            # The buffer makes reading lines fast: the readline of GzipFile is Python code.
            return io.BufferedReader(gzip.open(path, "rb"), 1 << 20)
        return path.open("rb", buffering=1 << 20)
    except OSError as error:
        raise make_open_error(path, error) from error

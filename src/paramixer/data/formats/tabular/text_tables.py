"""csv, tsv and JSON lines row by row. Memory is bounded by the longest row."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, NamedTuple

from paramixer.data.errors import DataError
from paramixer.data.formats import compression
from paramixer.data.formats.encodings import is_ascii_compatible, make_decode_error
from paramixer.data.formats.tabular.columns import find_columns, join_names

# A longer line or quoted field is damage, and would fill the memory.
_LONGEST = 2**31
_DELIMITERS = (",", ";", "\t")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Lines(NamedTuple):
    """Where lines come from."""

    path: Path
    """The file, or a name for messages."""
    encoding: str = "utf-8"
    file: BinaryIO | None = None
    """Read instead of opening the path, from where it stands; it stays open."""
    lines: Iterable[tuple[int, str]] | None = None
    """Their numbers and texts, if they are read already."""


def read_delimited(source: Lines, wanted: Sequence[str], delimiter: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its texts in the wanted columns.

    Args:
        source: the file.
        wanted: names of columns.
        delimiter: what the name of the file says; see :func:`_find_delimiter`.
    """
    path = source.path
    records = _read_records(source, delimiter)
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


def read_delimited_names(source: Lines, delimiter: str) -> list[str]:
    """Return the names in the header."""
    for _, fields in _read_records(source, delimiter):
        return _clean_names(fields)
    raise DataError("the file is empty", source.path)


def _clean_names(fields: list[str]) -> list[str]:
    return [name.strip() for name in fields]


def _read_records(source: Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each record begins, and its fields. Empty lines are skipped.

    The standard library's reader is not used: it limits the length of fields for the whole process, and ignores a
    quote that never ends unless it is also strict about everything else.
    """
    fields: list[str] = []
    quoted: list[str] | None = None
    begin = size = 0
    path = source.path
    is_header = True
    for number, line in read_lines(source):
        text = line.rstrip("\r\n")
        if is_header and text:
            delimiter, is_header = _find_delimiter(text, delimiter), False
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


def _find_delimiter(header: str, usual: str) -> str:
    """Return what separates the names in a header: another mark than usual where only that one stands between them."""
    bare = _QUOTED.sub("", header)
    present = [mark for mark in _DELIMITERS if mark in bare]
    return present[0] if len(present) == 1 else usual


def read_json_lines(source: Lines, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its values in the wanted columns; null is an error unless ``nulls``."""
    number, path = None, source.path
    for number, row in _read_objects(source):
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


def read_json_names(source: Lines) -> list[str]:
    """Return the names in the first line."""
    for _, row in _read_objects(source):
        return list(row)
    raise DataError("the file is empty", source.path)


def _read_objects(source: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    path = source.path
    for number, line in read_lines(source):
        if line.strip():
            yield number, parse_object(line, path, number)


def parse_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """Return the JSON object on a line, which has this number in the file."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", path, f"line {number}") from error
    if not isinstance(row, dict):
        raise DataError(f"expected a JSON object, got a {type(row).__name__}", path, f"line {number}")
    # Half of a surrogate pair is not a character and cannot be encoded.
    if "\\u" in line and not _can_encode(row):
        raise DataError("an escape \\uD800 to \\uDFFF that is half of a surrogate pair", path, f"line {number}")
    return row


def _can_encode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_lines(source: Lines) -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and lines with their ends. Only a line feed ends a line."""
    if source.lines is not None:
        yield from source.lines
        return
    file = compression.open_file(source.path, by_name=True) if source.file is None else source.file
    try:
        yield from (_read_ascii_lines if is_ascii_compatible(source.encoding) else _read_wide_lines)(source, file)
    finally:
        if source.file is None:
            file.close()


def _read_ascii_lines(source: Lines, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of an encoding in which a line feed is one byte."""
    for number, line in _number_lines(source, partial(file.readline, _LONGEST), b""):
        if number == 1 and source.encoding == "utf-8":
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode(source.encoding)
        except UnicodeDecodeError as error:
            raise make_decode_error(error, source.path, f"line {number}") from error
        yield number, text


def _read_wide_lines(source: Lines, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of an encoding in which a line feed takes several bytes."""
    wrapper = io.TextIOWrapper(file, source.encoding, newline="\n")
    try:
        yield from _number_lines(source, partial(wrapper.readline, _LONGEST), "")
    except UnicodeDecodeError as error:
        raise make_decode_error(error, source.path) from error
    except UnicodeError as error:
        raise DataError(f"not {source.encoding} ({error}); give its encoding with --encoding", source.path) from error
    finally:
        wrapper.detach()


def _number_lines(source: Lines, read: Callable[[], AnyStr], end: AnyStr) -> Iterator[tuple[int, AnyStr]]:
    number = 0
    while True:
        number += 1
        try:
            line = read()
        except OSError as error:
            raise DataError(f"reading stopped: {error}; get the file again", source.path, f"line {number}") from error
        if line == end:
            return
        if len(line) == _LONGEST:
            raise DataError(f"a line of {_LONGEST} bytes or more", source.path, f"line {number}")
        yield number, line

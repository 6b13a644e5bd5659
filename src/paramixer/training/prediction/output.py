"""Rows of predictions into csv, JSON lines or parquet, to a file that appears when it is complete, or to a stream."""

from __future__ import annotations

import csv
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from paramixer.extras import needed_for
from paramixer.files import sync_folder, unfinished, writing

Row = dict[str, Any]
Write = Callable[[Row], None]

SUFFIXES = (".csv", ".jsonl", ".parquet")
# What spreadsheets take for the beginning of a formula, unless the whole cell is a number.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_GROUP = 10_000


def check_place(path: Path) -> None:
    """Raise an error where no predictions can be written to this path."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: predictions are written to {', '.join(SUFFIXES)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it, such as {path / 'predictions.csv'}")


@contextmanager
def open_writer(path: Path, escape: bool = True) -> Iterator[Write]:
    """Give a function that takes rows; the file appears, complete, when the context ends without an error.

    Args:
        path: .csv, .jsonl or .parquet.
        escape: as for :func:`write_csv`.
    """
    check_place(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    kept = "the file from before is kept" if path.exists() else "no prediction was written"
    with writing(path, kept), unfinished(temporary):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open_unfinished(temporary, path.suffix, escape) as write:
            yield write
        temporary.replace(path)
        sync_folder(path.parent)


def open_stream(stream: TextIO, suffix: str, escape: bool = True) -> AbstractContextManager[Write]:
    """Give a function that writes rows to a stream at once.

    Args:
        stream: of texts.
        suffix: .csv or .jsonl.
        escape: as for :func:`write_csv`.
    """
    return write_csv(stream, escape) if suffix == ".csv" else write_jsonl(stream)


@contextmanager
def write_csv(file: TextIO, escape: bool = True) -> Iterator[Write]:
    """Give a function that writes rows as csv, with a header from the first.

    Args:
        file: a stream of texts.
        escape: whether texts that a spreadsheet would execute get a single quote in front.
    """
    writer = csv.writer(file, lineterminator="\n" if file.isatty() else "\r\n")
    first = True

    def write(row: Row) -> None:
        nonlocal first
        if first:
            writer.writerow(map(clean, row))
            first = False
        writer.writerow(map(clean, row.values()))

    clean = escape_formula if escape else _keep
    yield write


@contextmanager
def write_jsonl(file: TextIO) -> Iterator[Write]:
    """Give a function that writes rows as JSON lines."""
    yield lambda row: print(json.dumps(row, ensure_ascii=False), file=file)


def escape_formula(cell: object) -> object:
    """Return a cell that no spreadsheet executes: a text that begins like a formula gets a single quote in front.

    Numbers, also as texts such as "-5", stay as they are.
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _keep(cell: object) -> object:
    return cell


@contextmanager
def _open_unfinished(path: Path, suffix: str, escape: bool) -> Iterator[Write]:
    if suffix == ".parquet":
        with _write_parquet(path) as write:
            yield write
        return
    open_rows = partial(write_csv, escape=escape) if suffix == ".csv" else write_jsonl
    with path.open("x", newline="" if suffix == ".csv" else None, encoding="utf-8") as file:
        with open_rows(file) as write:
            yield write
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _write_parquet(path: Path) -> Iterator[Write]:
    with needed_for("parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    rows: list[Row] = []
    writers: list[Any] = []
    with path.open("xb") as file:

        def flush() -> None:
            table = pa.Table.from_pylist(rows)
            if not writers:
                writers.append(parquet.ParquetWriter(file, table.schema))
            writers[0].write_table(table)
            rows.clear()

        def write(row: Row) -> None:
            rows.append(row)
            if len(rows) == _GROUP:
                flush()

        yield write
        if rows:
            flush()
        if writers:
            writers[0].close()
        file.flush()
        os.fsync(file.fileno())

"""Sequences without targets, from any file that a model can read, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from reprlib import repr as abbreviate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats import archives, arrays, fasta, tables
from paramixer.data.formats.cells import LOOK_AHEAD, are_number_lists, parse_sequence
from paramixer.data.formats.columns import find_columns, join_names
from paramixer.data.task import TaskInfo


class UnlabeledSequence(NamedTuple):
    """A sequence without a target."""

    id: str
    """The source's name for it, or its number, counted from 0."""
    sequence: NDArray[Any]
    """Token ids ``[length]`` or numbers ``[length, features]``, cut to the model's length."""


def read(source: Path, info: TaskInfo, text: str | None = None, id: str | None = None) -> Iterator[UnlabeledSequence]:
    """Yield every sequence of a source, in its order.

    Args:
        source: a table, FASTA, numpy arrays, or a folder or archive of .txt files.
        info: about the task that the model was trained on.
        text: the column of the sequences; by default as in training.
        id: the column that names them; by default as in training, or "id".
    """
    for place, name, value in read_values(source, info, text, id):
        yield UnlabeledSequence(name, encode(value, info, place))


def read_values(
    source: Path, info: TaskInfo, text: str | None = None, id: str | None = None
) -> Iterator[tuple[str, str, Any]]:
    """Yield place, name and raw value of every sequence of a source, in its order. Arguments as for :func:`read`."""
    if not source.exists():
        raise DataError("there is no such file or folder", source)
    yield from _read_raw(source, info, text, id)


def find_id_column(source: Path, info: TaskInfo, id: str | None = None) -> str | None:
    """Return the column of a table that names its sequences; None if there is none, or the source is no table."""
    if not tables.is_table(source):
        return None
    names = tables.read_names(source)
    if id is not None:
        find_columns([id], names, source)
    return next((name for name in (id, info.settings.get("id"), "id") if name in names), None)


def _read_raw(source: Path, info: TaskInfo, text: str | None, id: str | None) -> Iterator[tuple[str, str, Any]]:
    if tables.is_table(source):
        yield from _read_cells(source, info, text, id)
    elif fasta.is_fasta(source):
        for record in fasta.read_records(source):
            yield f"{source}, {record.place}", record.name, record.sequence
    elif arrays.is_arrays(source):
        for number, row in enumerate(arrays.read_rows(source, text)):
            yield f"{source}, row {number + 1}", str(number), row
    else:
        for name, content in archives.walk(source):
            if name.endswith(".txt"):
                try:
                    yield f"{source}, {name}", PurePosixPath(name).stem, content().decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(f"byte {error.start} is not UTF-8", source, name) from error


def _read_cells(source: Path, info: TaskInfo, text: str | None, id: str | None) -> Iterator[tuple[str, str, Any]]:
    column = text or info.settings.get("text")
    if column is None:
        names = join_names(tables.read_names(source))
        raise DataError(f"which column holds the sequences? Name it with --text; it has {names}", source)
    id_column = find_id_column(source, info, id)
    wanted = [column] if id_column is None else [column, id_column]
    as_numbers = False
    if info.features is not None:
        as_numbers = are_number_lists([value for _, (value,) in islice(tables.read(source, [column]), LOOK_AHEAD)])
    for number, (place, (value, *rest)) in enumerate(tables.read(source, wanted)):
        yield place, str(rest[0]) if rest else str(number), parse_sequence(value, as_numbers, column, place)


def encode(value: Any, info: TaskInfo, place: str) -> NDArray[Any]:
    """Return one raw sequence as a model reads it: token ids ``[length]`` or numbers ``[length, features]``.

    Args:
        value: a text, token ids, or numbers ``[length]`` or ``[length, features]``.
        info: about the task that the model was trained on.
        place: where the sequence stands, for messages.
    """
    if info.vocabulary is not None:
        if isinstance(value, str):
            try:
                tokens = info.vocabulary.encode(value, info.length)
            except ValueError as error:
                raise DataError(str(error), place) from error
        else:
            tokens = _to_array(value, info, place)[: info.length].astype(np.int64)
            if tokens.ndim != 1 or (len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(info.vocabulary)):
                raise DataError(f"token ids must be a list of numbers below {len(info.vocabulary)}", place)
        if not len(tokens):
            raise DataError("a sequence of length 0", place)
        return tokens
    if isinstance(value, str):
        raise DataError("a text, but the model reads numbers", place)
    numbers = _to_array(value, info, place)[: info.length].astype(np.float32)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.ndim != 2 or numbers.shape[1] != info.features or not len(numbers):
        raise DataError(f"numbers of shape {list(numbers.shape)}; the model reads {info.features} per position", place)
    if not np.isfinite(numbers).all():
        raise DataError("a number of the sequence is NaN or infinite", place)
    return numbers


def _to_array(value: Any, info: TaskInfo, place: str) -> NDArray[Any]:
    """Return a sequence of numbers as an array of at least one dimension."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        reads = f"{info.features} numbers per position"
        if info.vocabulary is not None:
            reads = f"texts, or lists of token ids below {len(info.vocabulary)}"
        raise DataError(f"{abbreviate(value)} is no sequence for this model, which reads {reads}", place)
    return array

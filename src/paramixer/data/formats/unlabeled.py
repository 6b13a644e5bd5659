"""Sequences without targets, from any file a model can be asked about, read one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats import archives, arrays, fasta, tables
from paramixer.data.task import TaskInfo
from paramixer.data.tasks import user_file

_LOOKED_AT = 100


class Asked(NamedTuple):
    """A sequence to be answered for."""

    id: str
    """What the source calls it, or its number from 0 on."""
    sequence: NDArray[Any]
    """Token ids ``[length]`` or numbers ``[length, features]``, cut to what the model takes."""


def read(source: Path, info: TaskInfo, text: str | None = None, id: str | None = None) -> Iterator[Asked]:
    """Every sequence of a source, in its order.

    Args:
        source: a table, FASTA, numpy arrays, or a folder or archive of .txt files.
        info: what the model was trained on.
        text: the column of the sequences; by default as in training.
        id: the column that names them; by default as in training, or "id".
    """
    if not source.exists():
        raise DataError("there is no such file or folder", source)
    for place, name, found in _raw(source, info, text, id):
        yield Asked(name, _encoded(found, info, place))


def id_column(source: Path, info: TaskInfo, id: str | None = None) -> str | None:
    """The column of a table that names its sequences; None where there is none, and for what is no table."""
    if not tables.is_table(source):
        return None
    there = tables.columns(source)
    if id is not None and id not in there:
        raise DataError(f"there is no column {id!r}; it has {', '.join(there)}", source)
    return next((name for name in (id, info.settings.get("id"), "id") if name in there), None)


def _raw(source: Path, info: TaskInfo, text: str | None, id: str | None) -> Iterator[tuple[str, str, Any]]:
    if tables.is_table(source):
        yield from _cells(source, info, text, id)
    elif fasta.is_fasta(source):
        for record in fasta.records(source):
            yield f"{source}, {record.place}", record.name, record.sequence
    elif arrays.is_arrays(source):
        for number, row in enumerate(arrays.rows(source, text)):
            yield f"{source}, row {number}", str(number), row
    else:
        for name, content in archives.members(source):
            if name.endswith(".txt"):
                try:
                    yield f"{source}, {name}", PurePosixPath(name).stem, content().decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(f"byte {error.start} is not UTF-8", source, name) from error


def _cells(source: Path, info: TaskInfo, text: str | None, id: str | None) -> Iterator[tuple[str, str, Any]]:
    there = tables.columns(source)
    column = text or info.settings.get("text")
    if column is None:
        raise DataError(f"which column holds the sequences? name it with --text; it has {', '.join(there)}", source)
    named = id_column(source, info, id)
    wanted = [column] if named is None else [column, named]
    written = False
    if info.features is not None:
        written = user_file.are_numbers([value for _, (value,) in islice(tables.read(source, [column]), _LOOKED_AT)])
    for number, (place, (found, *rest)) in enumerate(tables.read(source, wanted)):
        yield place, str(rest[0]) if rest else str(number), user_file.sequence_of(found, written, column, place)


def _encoded(found: Any, info: TaskInfo, place: str) -> NDArray[Any]:
    if info.vocabulary is not None:
        if isinstance(found, str):
            try:
                tokens = info.vocabulary.encode(found, info.length)
            except ValueError as error:
                raise DataError(str(error), place) from error
        else:
            tokens = np.asarray(found)[: info.length].astype(np.int64)
            if tokens.ndim != 1 or (len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(info.vocabulary)):
                raise DataError(f"token ids must be a list of numbers below {len(info.vocabulary)}", place)
        if not len(tokens):
            raise DataError("a sequence of length 0", place)
        return tokens
    if isinstance(found, str):
        raise DataError("a text, but the model reads numbers", place)
    numbers = np.asarray(found, np.float32)[: info.length]
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.ndim != 2 or numbers.shape[1] != info.features or not len(numbers):
        raise DataError(f"numbers of shape {list(numbers.shape)}; the model reads {info.features} a position", place)
    if not np.isfinite(numbers).all():
        raise DataError("a number of the sequence is NaN or infinite", place)
    return numbers

"""Sequences without targets, from any file that a model can read, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from reprlib import repr as abbreviate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats import alphabets, archives, arrays, fasta, media, texts
from paramixer.data.formats.encodings import check_encoding
from paramixer.data.formats.tabular import infer_columns, tables, text_tables
from paramixer.data.formats.tabular.cells import LOOK_AHEAD, are_number_lists, parse_numbers, parse_sequence
from paramixer.data.formats.tabular.columns import find_columns, join_names
from paramixer.data.formats.tabular.tables import Tables
from paramixer.data.formats.tabular.text_tables import Lines
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import AMINO_ACIDS


class UnlabeledSequence(NamedTuple):
    """A sequence without a target."""

    id: str
    """The source's name for it, or its number, counted from 0."""
    sequence: NDArray[Any]
    """Token ids ``[length]`` or numbers ``[length, features]``, cut to the model's length."""


def read(
    source: Path, info: TaskInfo, text: str | None = None, id: str | None = None, encoding: str | None = None
) -> Iterator[UnlabeledSequence]:
    """Yield every sequence of a source, in its order.

    Args:
        source: a table, FASTA, numpy arrays, a folder or archive of texts, images or sounds, one image or sound, or a
            .txt with a sequence on each line.
        info: about the task that the model was trained on.
        text: the column of the sequences; by default as in training.
        id: the column that names them; by default as in training, or "id".
        encoding: of texts; by default as in training.
    """
    for place, name, value in read_values(source, info, text, id, encoding):
        yield UnlabeledSequence(name, encode(value, info, place))


def read_values(
    source: Path, info: TaskInfo, text: str | None = None, id: str | None = None, encoding: str | None = None
) -> Iterator[tuple[str, str, Any]]:
    """Yield place, name and raw value of every sequence of a source, in its order. Arguments as for :func:`read`."""
    if not source.exists():
        raise DataError("there is no such file or folder", source)
    yield from _read_raw(source, info, text, id, _choose_encoding(info, encoding))


def find_id_column(source: Path, info: TaskInfo, id: str | None = None, encoding: str | None = None) -> str | None:
    """Return the column of a table that names its sequences; None if there is none, or the source is no table."""
    if not tables.is_table(source):
        return None
    table = tables.open_tables([source], _choose_encoding(info, encoding))
    return _find_id_column(table.read_names(), info, id, source)


def _find_id_column(names: list[str], info: TaskInfo, id: str | None, source: Path) -> str | None:
    if id is not None:
        find_columns([id], names, source)
    return next((name for name in (id, info.settings.get("id"), "id") if name in names), None)


def _choose_encoding(info: TaskInfo, encoding: str | None) -> str:
    return check_encoding(encoding or info.settings.get("encoding") or "utf-8")


def _read_raw(
    source: Path, info: TaskInfo, text: str | None, id: str | None, encoding: str
) -> Iterator[tuple[str, str, Any]]:
    decoder = media.restore_decoder(info.settings)
    if tables.is_table(source):
        table = tables.open_tables([source], encoding)
        column = text or _find_files(table, info, decoder) or _choose_column(table.read_names(), info, text, source)
        yield from _read_cells(table, column, info, _find_id_column(table.read_names(), info, id, source), decoder)
    elif fasta.is_fasta(source):
        letters = fasta.PROTEIN if info.vocabulary == AMINO_ACIDS else fasta.DNA
        for record in fasta.read_records(source, letters=letters):
            yield f"{source}, {record.place}", record.name, record.sequence
    elif arrays.is_arrays(source):
        for number, row in enumerate(arrays.read_rows(source, text)):
            yield f"{source}, row {number + 1}", str(number), row
    elif archives.is_archive(source):
        for name, content in archives.walk(source):
            place = f"{source}, {name}"
            if decoder is not None and name.lower().endswith(decoder.suffixes):
                yield place, name, decoder.decode(content(), place)
            elif decoder is None and name.lower().endswith(texts.SUFFIXES):
                yield place, name, texts.decode_text(content(), encoding, source, name)
    elif decoder is not None and source.name.lower().endswith(decoder.suffixes):
        yield str(source), source.name, decoder.decode(media.read_file(source, str(source)), str(source))
    elif source.name.lower().endswith(texts.SUFFIXES):
        yield from _number_lines(Lines(source, encoding), info)
    else:
        raise DataError("a table, FASTA, numpy arrays, .txt, a folder or an archive is expected", source)


def _choose_column(names: list[str], info: TaskInfo, text: str | None, source: Path) -> str:
    column: str | None = text or info.settings.get("text")
    if column is None:
        raise DataError(f"which column holds the sequences? Name it with --text; it has {join_names(names)}", source)
    return column


def _find_files(table: Tables, info: TaskInfo, decoder: media.Decoder | None) -> str | None:
    """Return the only column that names images or sounds, for a model that was trained on a folder of them."""
    if decoder is None or info.settings.get("text") is not None:
        return None
    names = [name for name in table.read_names() if infer_columns.find_files(table, name) == decoder.kind]
    return names[0] if len(names) == 1 else None


def _read_cells(
    table: Tables, column: str, info: TaskInfo, id_column: str | None, decoder: media.Decoder | None
) -> Iterator[tuple[str, str, Any]]:
    wanted = [column] if id_column is None else [column, id_column]
    folders = [path.parent for path in table.paths]
    as_numbers = False
    if info.features is not None and decoder is None:
        as_numbers = are_number_lists([value for _, (value,) in islice(table.read([column]), LOOK_AHEAD)])
    for number, (place, (value, *rest)) in enumerate(table.read(wanted)):
        name = str(rest[0]) if rest else str(number)
        if decoder is not None and isinstance(value, str):
            yield place, name, media.read_listed(decoder, folders, value, place)
        else:
            yield place, name, parse_sequence(value, as_numbers, column, place)


def _number_lines(source: Lines, info: TaskInfo) -> Iterator[tuple[str, str, Any]]:
    """Yield a sequence for each line that is not empty, named by its number, counted from 0."""
    number = 0
    for line_number, line in text_tables.read_lines(source):
        content = line.rstrip("\r\n")
        if content.strip():
            place = f"{source.path}, line {line_number}"
            value: Any = content
            if info.vocabulary is None or info.vocabulary.unit == "number":
                value = parse_numbers(content)
                if value is None:
                    raise DataError(f"{abbreviate(content)} is not a list of numbers, which the model reads", place)
            yield place, str(number), value
            number += 1


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
                text = alphabets.normalize(value, info.settings.get("alphabet", "text"))
                tokens = info.vocabulary.encode(text, info.length)
            except ValueError as error:
                raise DataError(str(error), place) from error
        else:
            tokens = _to_array(value, info, place)[: info.length]
            # Lists in csv are read as floats.
            are_whole = tokens.ndim == 1 and (tokens == np.round(tokens)).all()
            if not are_whole or (len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(info.vocabulary)):
                raise DataError(f"numbers, but the model reads {_describe_tokens(info)}", place)
            tokens = tokens.astype(np.int64)
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


def _describe_tokens(info: TaskInfo) -> str:
    assert info.vocabulary is not None
    return f"texts, or lists of token ids below {len(info.vocabulary)}"


def _to_array(value: Any, info: TaskInfo, place: str) -> NDArray[Any]:
    """Return a sequence of numbers as an array of at least one dimension."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        reads = f"{info.features} numbers per position"
        if info.vocabulary is not None:
            reads = _describe_tokens(info)
        plain = value.item() if isinstance(value, np.generic) else value
        raise DataError(f"{abbreviate(plain)} is no sequence for this model, which reads {reads}", place)
    return array

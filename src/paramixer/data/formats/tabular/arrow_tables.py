"""Arrow and Feather files, and Hugging Face datasets on disk, row by row. Memory is bounded by a record batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats.tabular import dataset_folders
from paramixer.data.formats.tabular.columns import find_columns, make_open_error
from paramixer.data.formats.tabular.parquet import UNREADABLE, read_values
from paramixer.extras import needed_for

with needed_for("Arrow files"):
    import pyarrow as pa

# Both kinds of file begin with these; a stream has no mark.
_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"
# Rows that are converted at a time.
_ROWS = 128


def read_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    with _open(_list_files(path)[0]) as (schema, _):
        return [str(name) for name in schema.names]


def read_rows(path: Path, wanted: Sequence[str], nulls: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place and its values in the wanted columns; null is an error unless ``nulls``."""
    class_names = dataset_folders.read_class_names(path) if path.is_dir() else {}
    names = [class_names.get(column) for column in wanted]
    number = 0
    for file in _list_files(path):
        with _open(file) as (schema, batches):
            find_columns(wanted, [str(name) for name in schema.names], path)
            for batch in _stop_at_damage(batches, path):
                for begin in range(0, batch.num_rows, _ROWS):
                    piece = batch.slice(begin, _ROWS)
                    columns = [read_values(_decode(piece.column(name)), path, number) for name in wanted]
                    for row in zip(*columns, strict=True) if columns else [()] * piece.num_rows:
                        number += 1
                        values = tuple([_name_class(value, known) for value, known in zip(row, names, strict=True)])
                        if None in values and not nulls:
                            raise DataError(f"null in {wanted[values.index(None)]!r}", path, f"row {number}")
                        yield f"{path}, row {number}", values
    if number == 0:
        raise DataError("there is not a single row in it", path)


def _list_files(path: Path) -> list[Path]:
    return dataset_folders.list_files(path) if path.is_dir() else [path]


@contextmanager
def _open(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Yield the schema and the batches of a file or stream."""
    try:
        file = pa.OSFile(str(path), "rb")
    except OSError as error:
        raise make_open_error(path, error) from error
    with file:
        try:
            begin = file.read(len(_FILE))
            file.seek(0)
            if begin == _FILE:
                reader = pa.ipc.open_file(file)
                batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            else:
                reader = pa.ipc.open_stream(file)
                batches = iter(reader)
            schema = reader.schema
        except UNREADABLE as error:
            what = "the file is empty" if not begin else f"not an Arrow file: {error}"
            if begin.startswith(_FEATHER_1):
                what = "a Feather file of version 1; write it again as version 2"
            raise DataError(what, path) from error
        yield schema, batches


def _stop_at_damage(batches: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    count = 0
    while True:
        try:
            batch = next(batches, None)
            if batch is not None:
                batch.validate(full=True)
        except UNREADABLE as error:
            raise DataError(f"reading stopped: {error}; get the file again", path, f"row {count + 1}") from error
        if batch is None:
            return
        yield batch
        count += batch.num_rows


def _decode(column: pa.Array) -> pa.Array:
    """Return the values of a column that was written as a dictionary, as categories are."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _name_class(value: object, names: list[str] | None) -> object:
    """Return the name of a class for its number; None, as for a null, if the number is none."""
    if names is None or not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None

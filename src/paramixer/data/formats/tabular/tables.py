"""Tables row by row: csv, tsv and JSON lines, plain or compressed, parquet, Arrow, and Hugging Face datasets on disk.

Every fault of a file is a :class:`DataError` that names the file and the line or row. Memory is bounded by the longest
row (in parquet and Arrow by a batch of rows), not by the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import compression
from paramixer.data.formats.tabular import text_tables
from paramixer.data.formats.tabular.columns import join_names
from paramixer.data.formats.tabular.dataset_folders import SPLITS_FILE, is_dataset_folder, read_split_names
from paramixer.data.formats.tabular.text_tables import Lines
from paramixer.data.splits import SPLIT_NAMES

SPLIT = "split"
"""The column of the splits, if the files say by their names which split they hold."""

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_TEXTS = (*_DELIMITERS, *_JSON_LINES)
_PARQUET = ".parquet"
_ARROW = (".arrow", ".feather")
_DATASET = "dataset"


@dataclass(frozen=True)
class Tables:
    """Tables of the same columns, which are read one after another as a single one."""

    paths: tuple[Path, ...]
    encoding: str = "utf-8"
    splits: tuple[str, ...] = ()
    """The split that each table holds, which is then the column :data:`SPLIT`; empty if they do not say."""
    skipped: tuple[str, ...] = ()
    """Splits of a dataset that are neither train, validation nor test, and are not read."""

    @property
    def name(self) -> str:
        """What messages call them."""
        return name_files(self.paths)

    def read_names(self) -> list[str]:
        """Return the names of the columns.

        Raises:
            DataError: the tables have different columns.
        """
        names = read_names(self.paths[0], self.encoding)
        for path in self.paths[1:]:
            if sorted(others := read_names(path, self.encoding)) != sorted(names):
                raise DataError(
                    f"its columns are {join_names(others)}, where those of {self.paths[0]} are {join_names(names)}; "
                    "give files of the same columns",
                    path,
                )
        return [*names, SPLIT] if self.splits and SPLIT not in names else names

    def read(self, wanted: Sequence[str], nulls: bool = False) -> Iterator[tuple[str, tuple[object, ...]]]:
        """Yield rows as :func:`read` does."""
        for number, path in enumerate(self.paths):
            if not self.splits or SPLIT not in wanted or SPLIT in read_names(path, self.encoding):
                yield from read(path, wanted, nulls, self.encoding)
                continue
            stored = [name for name in wanted if name != SPLIT]
            for place, values in read(path, stored, nulls, self.encoding):
                rest = iter(values)
                yield place, tuple([self.splits[number] if name == SPLIT else next(rest) for name in wanted])


def open_tables(paths: Sequence[Path], encoding: str = "utf-8") -> Tables:
    """Return tables as one; a dataset with several splits is as many tables.

    Files that are all named for splits, such as train.csv and test.csv, are these splits.
    """
    splits: list[str | None] = []
    parts: list[Path] = []
    skipped: list[str] = []
    for path in paths:
        if path.is_dir() and (path / SPLITS_FILE).exists():
            for name in read_split_names(path):
                if name.lower() in SPLIT_NAMES:
                    parts.append(path / name)
                    splits.append(SPLIT_NAMES[name.lower()])
                else:
                    skipped.append(name)
        else:
            parts.append(path)
            splits.append(name_split(path))
    if not parts:
        raise DataError(f"none of its splits is train, validation or test; there are {join_names(skipped)}", paths[0])
    known = tuple([split for split in splits if split is not None])
    says_all = len(known) == len(parts) and len(parts) > 1
    return Tables(tuple(parts), encoding, known if says_all else (), tuple(skipped))


def name_split(path: Path) -> str | None:
    """Return the split that a file's name says it holds, such as train.csv; None if it says nothing."""
    return SPLIT_NAMES.get(path.name.split(".")[0].lower())


def name_files(paths: Sequence[Path]) -> str:
    """Return what messages call files that are read as one."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def is_table(path: Path) -> bool:
    """Return whether the file's name is that of a table, or the folder is a Hugging Face dataset."""
    return _find_kind(path) is not None


def describe_kind(path: Path) -> str:
    """Return what kind of table it is, in a word."""
    kind = _require_kind(path)
    return "Hugging Face dataset" if kind == _DATASET else kind.removeprefix(".")


def read_names(path: Path, encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns; of JSON lines, those of the first line."""
    kind = _require_kind(path)
    if kind == _PARQUET:
        # Only these kinds need pyarrow.
        from paramixer.data.formats.tabular import parquet

        return parquet.read_names(path)
    if kind == _DATASET or kind in _ARROW:
        from paramixer.data.formats.tabular import arrow_tables

        return arrow_tables.read_names(path)
    lines = Lines(path, encoding)
    if kind in _JSON_LINES:
        return text_tables.read_json_names(lines)
    return text_tables.read_delimited_names(lines, _DELIMITERS[kind])


def read(
    path: Path, wanted: Sequence[str], nulls: bool = False, encoding: str = "utf-8"
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each row's place, for messages, and its values in the wanted columns.

    The place is "FILE, line 17", the line where the row begins, or "FILE, row 17" in parquet and Arrow, both counted
    from 1. In csv and tsv every value is a text; a header without the usual separator, but with commas, semicolons or
    tabs, says what separates them instead. In the other kinds it has its own type, and null is an error unless
    ``nulls``. Fields of csv and tsv may be in double quotes, inside which quotes are doubled and lines may end.
    """
    kind = _require_kind(path)
    if kind == _PARQUET:
        from paramixer.data.formats.tabular import parquet

        return parquet.read_rows(path, wanted, nulls)
    if kind == _DATASET or kind in _ARROW:
        from paramixer.data.formats.tabular import arrow_tables

        return arrow_tables.read_rows(path, wanted, nulls)
    lines = Lines(path, encoding)
    if kind in _JSON_LINES:
        return text_tables.read_json_lines(lines, wanted, nulls)
    return text_tables.read_delimited(lines, wanted, _DELIMITERS[kind])


def _find_kind(path: Path) -> str | None:
    if path.is_dir():
        return _DATASET if is_dataset_folder(path) else None
    name = path.name.lower()
    binary = next((suffix for suffix in (_PARQUET, *_ARROW) if name.endswith(suffix)), None)
    name = compression.strip_suffix(name)
    return binary or next((suffix for suffix in _TEXTS if name.endswith(suffix)), None)


def _require_kind(path: Path) -> str:
    kind = _find_kind(path)
    if kind is None:
        packed = ", ".join(compression.SUFFIXES)
        raise DataError(
            f"a table is named {', '.join(_TEXTS)} (these also with {packed}), {_PARQUET}, {' or '.join(_ARROW)}", path
        )
    return kind

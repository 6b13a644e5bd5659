"""A user's own file: a table, FASTA, or numpy arrays, with a class or a value for every sequence."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data import task
from paramixer.data.errors import DataError
from paramixer.data.formats import arrays, fasta, fasta_labels, infer_columns, labels, tables
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.samples import Sample, Shares, write_samples
from paramixer.data.storage import cache
from paramixer.data.task import Preparation, Task, TaskInfo
from paramixer.data.tasks.genome.task import VOCABULARY as BASES
from paramixer.data.vocabulary import Vocabulary

LONGEST = 16384
"""N is the longest sequence, but never more than this unless it is said."""

_BYTES = Vocabulary(symbols=tuple(map(str, range(256))), unit="number")
# So many rows are looked at to tell lists of numbers that are written as text from texts.
_LOOKED_AT = 100
# A record of FASTA in which more of the letters are no bases is something else.
_MOST_STRANGE = 0.2


class _Source(NamedTuple):
    """A file as it is read."""

    read: Callable[[], Iterable[Sample]]
    preset: str
    vocabulary: Vocabulary | None = None
    columns: dict[str, str | None] | None = None
    notes: tuple[str, ...] = ()


def load(
    *,
    source: Path,
    length: int | None = None,
    seed: int = 0,
    text: str | None = None,
    label: str | None = None,
    labels: str | Path | None = None,
    target: Literal["class", "value"] | None = None,
    strict: bool = False,
    validation: float = 0.1,
    test: float = 0.1,
    split: str | None = None,
    id: str | None = None,
    count: Counter = silent,
) -> Task:
    """Sequences of one's own.

    - A table (csv, tsv, JSON lines, parquet): texts, or lists of numbers, or lists of equally long lists of numbers,
      in one column, labels or values in another. In csv and tsv a list is written ``[1, 2.5]`` or ``1 2.5``.
    - FASTA: the label is in the header or in a table of its own.
    - numpy: ``[sequences, length]`` or ``[sequences, length, features]``, see :mod:`paramixer.data.formats.arrays`.
      Arrays ``[sequences, length]`` of unsigned bytes are token ids; all others are numbers.

    Args:
        source: the file.
        length: N; by default the longest sequence, at most 16 384. Longer ones are cut.
        seed: of the cut into splits.
        text: the column, or the array in a .npz, of the sequences; guessed if not given.
        label: the column or array of the labels; in FASTA, the key of ``key=value`` in the header, or a regular
            expression with one group; guessed if not given.
        labels: a second file with the labels: for FASTA a table with the columns id and label, for .npy a .npy.
        target: whether targets are classes or values; by default told from them.
        strict: refuse letters that do not stand in train; in FASTA, letters that are no bases.
        validation: share for validation, where the source has no such split.
        test: share for test, where the source has no splits.
        split: the column, or the header's key, that says train, validation or test; by default one named split.
        id: the column that names the sequences; by default one named id.
        count: shows progress.
    """
    if target not in (None, "class", "value"):
        raise DataError(f"target={target!r}; choose from class, value")
    kind = next((kind for kind, (belongs, _) in _KINDS.items() if belongs(source)), None)
    if kind is None:
        raise DataError(f"its name does not say what it is; wanted is {', '.join(_KINDS)}", source)
    beside = None if labels is None else Path(labels)
    shares = Shares(validation=validation, test=test)
    names = {"text": text, "label": label, "split": split, "id": id}
    given: dict[str, Any] = {**names, "strict": strict, "target": target, "length": length, "seed": seed}
    given |= {"validation": validation, "test": test}

    def build(preparation: Preparation) -> TaskInfo:
        opened = _KINDS[kind][1](source, beside, names, strict)
        info = write_samples(
            preparation,
            opened.read,
            source=str(source),
            name="own",
            preset=opened.preset,
            length=length,
            seed=seed,
            settings={**given, **(opened.columns or {})},
            shares=shares,
            target=target,
            vocabulary=opened.vocabulary,
            cls=True,
            strict=strict,
            longest=LONGEST,
        )
        return dataclasses.replace(info, notes=(*opened.notes, *info.notes))

    key = {"source": cache.identity(source), "labels": beside and cache.identity(beside), **given}
    return task.prepared("own", key, build, count)


def _table(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    if labels is not None:
        raise DataError("a table holds its labels in a column; name it with --label, without --labels", source)
    columns = infer_columns.choose(source, **names)
    values = [value for _, (value,) in islice(tables.read(source, [columns.text]), _LOOKED_AT)]
    written = are_numbers(values)
    of_numbers = written or isinstance(values[0], list)
    guessed = [
        f"column {column!r} was taken for the {what}"
        for what, column in (("texts", columns.text), ("labels", columns.label))
        if column not in names.values()
    ]
    return _Source(
        lambda: _rows(source, columns, written),
        "adding" if of_numbers else "text",
        columns=columns._asdict(),
        notes=tuple(guessed),
    )


def _rows(source: Path, columns: infer_columns.Columns, written: bool) -> Iterator[Sample]:
    extra = [name for name in (columns.split, columns.id) if name is not None]
    for place, (found, label, *rest) in tables.read(source, [columns.text, columns.label, *extra]):
        known = dict(zip(extra, rest, strict=True))
        yield Sample(
            sequence_of(found, written, columns.text, place),
            labels.of(label, columns.label, place),
            place,
            None if columns.split is None else labels.split_of(known[columns.split], place),
            "" if columns.id is None else str(known[columns.id]),
        )


def sequence_of(found: object, written: bool, column: str, place: str) -> str | NDArray[Any]:
    """A text or numbers from a cell of a table; ``written`` says that numbers are written as text."""
    if isinstance(found, str):
        if not written:
            return found
        if (numbers := _numbers(found)) is None:
            raise DataError(f"this is no list of numbers, as the first rows of {column!r} are", place)
        return numbers
    if not isinstance(found, list):
        raise DataError(f"{column!r} holds {labels.kind_of(found)}; wanted is a text or a list of numbers", place)
    if (numbers := _array(found)) is None:
        raise DataError("a list that is neither of numbers nor of equally long lists of numbers", place)
    return numbers


def are_numbers(values: list[object]) -> bool:
    """Whether all are texts with numbers only, and not just one each."""
    found = [numbers for value in values if isinstance(value, str) and (numbers := _numbers(value)) is not None]
    return len(found) == len(values) and any(len(numbers) > 1 for numbers in found)


def _numbers(text: str) -> NDArray[Any] | None:
    """The numbers that are written as text; None if there is anything else."""
    try:
        if text.lstrip().startswith("["):
            return _array(json.loads(text))
        return np.array(text.replace(",", " ").replace(";", " ").split(), np.float64)
    except (ValueError, RecursionError):
        return None


def _array(found: list[Any]) -> NDArray[Any] | None:
    try:
        numbers = np.asarray(found)
    except ValueError:
        return None
    fits = numbers.dtype.kind in "biuf" and (numbers.ndim == 1 or (numbers.ndim == 2 and numbers.shape[1] > 0))
    return numbers if fits else None


def _fasta(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    if names["text"] is not None:
        raise DataError("FASTA has no columns; --text is for tables", source)
    if labels is None and names["id"] is not None:
        raise DataError("a record's id is the first word of its header; --id is for the table of --labels", source)
    if labels is not None:
        labelled = fasta_labels.listed(labels, names["id"] or "id", names["label"] or "label", names["split"])
    else:
        labelled = fasta_labels.in_header(source, names["label"], names["split"])
    return _Source(lambda: _records(source, strict, labelled), "hfdna", BASES)


def _records(source: Path, strict: bool, labelled: fasta_labels.Labelled) -> Iterator[Sample]:
    for record in fasta.records(source, strict):
        place = f"{source}, {record.place}"
        if record.unknown > _MOST_STRANGE * len(record.sequence):
            raise DataError(
                f"{record.unknown} of {len(record.sequence)} letters are no bases; other sequences go into a table",
                place,
            )
        label, split = labelled(record)
        yield Sample(
            record.sequence, label, place, None if split is None else labels.split_of(split, place), record.name
        )


def _numpy(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    for name in ("split", "id"):
        if names[name] is not None:
            raise DataError(f"arrays have no columns; --{name} is for tables", source)
    parts = arrays.opened(source, labels, names["text"], names["label"])
    tokens = arrays.hold_tokens(parts)
    return _Source(lambda: arrays.samples(parts), "image" if tokens else "adding", _BYTES if tokens else None)


_KINDS: dict[str, tuple[Callable[[Path], bool], Callable[..., _Source]]] = {
    "a table (.csv, .tsv, .jsonl, .ndjson, .parquet)": (tables.is_table, _table),
    "FASTA (.fa, .fasta, .fna)": (fasta.is_fasta, _fasta),
    "numpy (.npy, .npz)": (arrays.is_arrays, _numpy),
}

TASKS = (
    Definition(
        name="own",
        title="a class or a value for every sequence of a file",
        length=f"the longest, up to {LONGEST}",
        classes="from the file",
        origin="your file: csv, tsv, jsonl, parquet, FASTA or numpy",
        load=load,
    ),
)

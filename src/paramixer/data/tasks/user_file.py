"""A user's own file: a table, FASTA, or numpy arrays, with a class or a value for every sequence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.formats import arrays, fasta, fasta_labels, infer_columns, tables
from paramixer.data.formats.cells import LOOK_AHEAD, are_number_lists, parse_label, parse_sequence
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.samples import Sample
from paramixer.data.splits import Shares, parse_split
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import BASES, BYTES, Vocabulary

LONGEST = 16384
"""N is the longest sequence, but at most this unless a length is given."""

# A FASTA record with a larger share of letters that are not bases is something else.
_MOST_UNKNOWN = 0.2


class _Source(NamedTuple):
    """How a file is read."""

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
    progress: Progress = no_progress,
) -> Task:
    """Return the sequences of a user's file as a task.

    - A table (csv, tsv, JSON lines, parquet): texts, or lists of numbers, or lists of equally long lists of numbers,
      in one column, labels or values in another. In csv and tsv a list is written ``[1, 2.5]`` or ``1 2.5``.
    - FASTA: the label is in the header or in a table of its own.
    - numpy: ``[sequences, length]`` or ``[sequences, length, features]``, see :mod:`paramixer.data.formats.arrays`.
      Arrays ``[sequences, length]`` of unsigned bytes are token ids; all others are numbers.

    Args:
        source: the file.
        length: N; by default the longest sequence, at most 16 384. Longer ones are cut.
        seed: of the random order in which splits are cut.
        text: the column, or the array in a .npz, of the sequences; inferred if not given.
        label: the column or array of the labels; in FASTA, the key of ``key=value`` in the header, or a regular
            expression with one group; inferred if not given.
        labels: a second file with the labels: for FASTA a table with the columns id and label, for .npy a .npy.
        target: whether targets are classes or values; inferred if not given.
        strict: refuse letters that are not in train; in FASTA, letters that are not bases.
        validation: share for validation, if the source has no such split.
        test: share for test, if the source has no splits.
        split: the column, or the header's key, of the split; by default a column named split.
        id: the column of the sequences' names; by default a column named id.
        progress: shows progress.
    """
    if target not in (None, "class", "value"):
        raise DataError(f"target={target!r}; choose from class, value")
    if length is not None:
        check_integer("length", length, 2)
    shares = Shares(validation=validation, test=test)
    kind = next((kind for kind, (matches, _) in _KINDS.items() if matches(source)), None)
    if kind is None:
        raise DataError(f"the kind of file is not clear from its name; expected {', '.join(_KINDS)}", source)
    label_file = None if labels is None else Path(labels)
    names = {"text": text, "label": label, "split": split, "id": id}
    given: dict[str, Any] = {**names, "strict": strict, "target": target, "length": length, "seed": seed}
    given |= {"validation": validation, "test": test}

    def build(preparation: Preparation) -> TaskInfo:
        file = _KINDS[kind][1](source, label_file, names, strict)
        info = write_samples(
            preparation,
            file.read,
            source=str(source),
            name="own",
            preset=file.preset,
            length=length,
            seed=seed,
            settings={**given, **(file.columns or {})},
            shares=shares,
            target=target,
            vocabulary=file.vocabulary,
            cls=True,
            strict=strict,
            longest=LONGEST,
            inspect=True,
        )
        return dataclasses.replace(info, notes=(*file.notes, *info.notes), variable_length=True)

    key = {"source": cache.identify(source), "labels": label_file and cache.identify(label_file), **given}
    return prepare("own", key, build, progress)


def _open_table(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    if labels is not None:
        raise DataError("a table holds its labels in a column; name it with --label, without --labels", source)
    columns = infer_columns.choose_columns(source, **names)
    values = [value for _, (value,) in islice(tables.read(source, [columns.text]), LOOK_AHEAD)]
    as_numbers = are_number_lists(values)
    # The notes enter the fingerprint, so their wording stays.
    notes = [
        f"column {column!r} was taken for the {what}"
        for what, column in (("texts", columns.text), ("labels", columns.label))
        if column not in names.values()
    ]
    return _Source(
        lambda: _read_table(source, columns, as_numbers),
        "adding" if as_numbers or isinstance(values[0], list) else "text",
        columns=columns._asdict(),
        notes=tuple(notes),
    )


def _read_table(source: Path, columns: infer_columns.Columns, as_numbers: bool) -> Iterator[Sample]:
    optional = [name for name in (columns.split, columns.id) if name is not None]
    for place, (value, label, *rest) in tables.read(source, [columns.text, columns.label, *optional]):
        values = dict(zip(optional, rest, strict=True))
        yield Sample(
            parse_sequence(value, as_numbers, columns.text, place),
            parse_label(label, columns.label, place),
            place,
            None if columns.split is None else parse_split(values[columns.split], place),
            "" if columns.id is None else str(values[columns.id]),
        )


def _open_fasta(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    if names["text"] is not None:
        raise DataError("FASTA has no columns; --text is for tables", source)
    if labels is None and names["id"] is not None:
        raise DataError("a record's id is the first word of its header; --id is for the table of --labels", source)
    if labels is not None:
        label, id = names["label"] or "label", names["id"] or "id"
        find_label = fasta_labels.make_table_labeler(labels, id, label, names["split"])
    else:
        find_label = fasta_labels.make_header_labeler(source, names["label"], names["split"])
    return _Source(lambda: _read_fasta(source, strict, find_label), "hfdna", BASES)


def _read_fasta(source: Path, strict: bool, find_label: fasta_labels.Labeler) -> Iterator[Sample]:
    for record in fasta.read_records(source, strict):
        place = f"{source}, {record.place}"
        if record.unknown > _MOST_UNKNOWN * len(record.sequence):
            raise DataError(
                f"{record.unknown} of {len(record.sequence)} letters are not bases; put other sequences into a table",
                place,
            )
        label, split = find_label(record)
        yield Sample(record.sequence, label, place, None if split is None else parse_split(split, place), record.name)


def _open_arrays(source: Path, labels: Path | None, names: dict[str, str | None], strict: bool) -> _Source:
    for name in ("split", "id"):
        if names[name] is not None:
            raise DataError(f"arrays have no columns; --{name} is for tables", source)
    parts = arrays.read_parts(source, labels, names["text"], names["label"])
    tokens = arrays.hold_tokens(parts)
    return _Source(lambda: arrays.read_samples(parts), "image" if tokens else "adding", BYTES if tokens else None)


_KINDS: dict[str, tuple[Callable[[Path], bool], Callable[..., _Source]]] = {
    "a table (.csv, .tsv, .jsonl, .ndjson, .parquet)": (tables.is_table, _open_table),
    "FASTA (.fa, .fasta, .fna)": (fasta.is_fasta, _open_fasta),
    "numpy (.npy, .npz)": (arrays.is_arrays, _open_arrays),
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

"""A user's own files: how they are recognized, and which options there are."""

from __future__ import annotations

import dataclasses
import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.formats import arrays, fasta
from paramixer.data.formats.encodings import check_encoding
from paramixer.data.formats.picture_sequences import parse_size
from paramixer.data.formats.tabular import tables
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.splits import Shares
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.tasks.user_file.array_rows import open_arrays
from paramixer.data.tasks.user_file.class_folders import is_folder, open_folder
from paramixer.data.tasks.user_file.fasta_records import open_fasta
from paramixer.data.tasks.user_file.opened import LONGEST, Alphabet, Opened, Options
from paramixer.data.tasks.user_file.tables_of_samples import open_tables

# Part of every key of the cache. Raise it when the same file is prepared in another way.
_VERSION = 4


def load(
    *,
    source: Path | Sequence[Path],
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
    weight: str | None = None,
    encoding: str | None = None,
    alphabet: Alphabet | None = None,
    image_size: str | int | None = None,
    rate: int | None = None,
    progress: Progress = no_progress,
) -> Task:
    """Return the sequences of a user's files as a task.

    - Tables (csv, tsv, JSON lines, parquet, Arrow, Feather, Hugging Face datasets on disk): texts, or lists of
      numbers, or lists of equally long lists of numbers, or paths of images or sounds, in one column, labels or values
      in another. In csv and tsv a list is written ``[1, 2.5]`` or ``1 2.5``.
    - FASTA, DNA or proteins: the label is in the header, in a table of its own, or the name of the file.
    - numpy: ``[sequences, length]`` or ``[sequences, length, features]``, see :mod:`paramixer.data.formats.arrays`.
      Arrays ``[sequences, length]`` of unsigned bytes are token ids; all others are numbers.
    - Folders and archives with a folder for each class: texts, images or sounds.

    csv, tsv, JSON lines, FASTA and .txt can be compressed by gzip, Zstandard or xz. Several tables or FASTA files are
    read as one; if they are all named for splits, such as train.csv and test.csv, they are these splits. Splits that
    are cut get the same share of every class.

    Args:
        source: the file, several files, or a folder.
        length: N; by default that of the longest sequence, or, if a few are far longer than the others, what 99 % of
            them do not exceed, but at most 16 384. Longer ones are cut.
        seed: of the random order in which splits are cut.
        text: the column, or the array in a .npz, of the sequences; inferred if not given.
        label: the column or array of the labels; in FASTA, the key of ``key=value`` in the header, ``header:2`` for
            its second word, ``header:last``, ``header:before:|``, a regular expression with one group, or ``file``
            for a file for each class; inferred if not given.
        labels: a second file with the labels: for FASTA a table with the columns id and label, for .npy a .npy.
        target: whether targets are classes or values; inferred if not given.
        strict: refuse letters that are not in train, or not in the alphabet of DNA or proteins.
        validation: share for validation, if the source has no such split.
        test: share for test, if the source has no splits.
        split: the column, or the key in FASTA headers, of the split; by default split, where there is one.
        id: the column of the sequences' names; by default a column named id.
        weight: the column of a table that says how much each sequence counts in training; by default all count alike.
        encoding: of csv, tsv, JSON lines and .txt, such as latin-1; by default UTF-8.
        alphabet: dna, protein or text; inferred if not given.
        image_size: pixels that images are resized to, "32" or "32x24" (width and height).
        rate: samples per second that sounds are resampled to.
        progress: shows progress.
    """
    if target not in (None, "class", "value"):
        raise DataError(f"target={target!r}; choose from class, value")
    if alphabet not in (None, "dna", "protein", "text"):
        raise DataError(f"alphabet={alphabet!r}; choose from dna, protein, text")
    for name, number, least in (("length", length, 2), ("rate", rate, 1)):
        if number is not None:
            check_integer(name, number, least)
    if image_size is not None:
        parse_size(image_size)
        if str(image_size).isdecimal():
            # The command line gives a text; the fingerprint is the same.
            image_size = int(image_size)
    shares = Shares(validation=validation, test=test)
    paths = list_files(source)
    open_files = _find_kind(paths)
    names: dict[str, Any] = {"text": text, "label": label, "split": split, "id": id}
    if weight is not None:
        # Only where it is given: the names enter the fingerprint.
        names["weight"] = weight
        if open_files is not open_tables:
            raise DataError(
                f"--weight {weight} names a column of a table; put the sequences into one", tables.name_files(paths)
            )
    read: dict[str, Any] = {"encoding": encoding, "alphabet": alphabet, "image_size": image_size, "rate": rate}
    given: dict[str, Any] = {**names, "strict": strict, "target": target, "length": length, "seed": seed}
    given |= {"validation": validation, "test": test}
    given |= {name: value for name, value in read.items() if value is not None}
    options = Options(
        **names,
        **{**read, "encoding": check_encoding(encoding or "utf-8")},
        labels=None if labels is None else Path(labels),
        strict=strict,
        length=length,
    )

    def build(preparation: Preparation) -> TaskInfo:
        opened = open_files(paths, options)
        info = write_samples(
            preparation,
            opened.read,
            source=tables.name_files(paths),
            name="own",
            preset=opened.preset,
            length=length,
            seed=seed,
            settings={**given, **opened.settings},
            shares=shares,
            target=target,
            vocabulary=opened.vocabulary,
            cls=True,
            strict=strict,
            longest=LONGEST,
            weighted=weight is not None,
            inspect=True,
        )
        return dataclasses.replace(
            info,
            notes=(*opened.notes, *info.notes),
            inferred={**opened.inferred, **info.inferred},
            variable_length=True,
        )

    sources = [cache.identify(path) for path in paths]
    label_file = options.labels and cache.identify(options.labels)
    key = {"version": _VERSION, "sources": sources, "labels": label_file, **given}
    return prepare("own", key, build, progress)


def list_files(source: Path | Sequence[Path]) -> list[Path]:
    """Return the files of a source: those of a pattern such as ``part*.csv``, and of a folder of tables or FASTA."""
    files: list[Path] = []
    for path in [source] if isinstance(source, Path) else source:
        if not path.exists() and glob.has_magic(str(path)):
            matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207
            if not matches:
                raise DataError("no file matches this pattern", path)
            files += map(Path, matches)
        else:
            files += _list_folder(path)
    if not files:
        raise DataError("there is no file to read; name one")
    if repeated := [path for path in files if files.count(path) > 1]:
        raise DataError("it is given twice", repeated[0])
    return files


def _list_folder(path: Path) -> list[Path]:
    """Return the tables or the FASTA files in a folder, if it has nothing but these; otherwise the path itself."""
    if not path.is_dir() or tables.is_table(path):
        return [path]
    inside = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    for fits in (fasta.is_fasta, tables.is_table):
        if inside and all(file.is_file() and fits(file) for file in inside):
            return inside
    return [path]


def _find_kind(paths: Sequence[Path]) -> Callable[[Sequence[Path], Options], Opened]:
    kinds = []
    for path in paths:
        kind = next((kind for kind, (matches, _) in _KINDS.items() if matches(path)), None)
        if kind is None:
            raise DataError(f"the kind of file is not clear from its name; expected {', '.join(_KINDS)}", path)
        kinds.append(kind)
        if kind != kinds[0]:
            raise DataError(f"it is {kind}, where {paths[0]} is {kinds[0]}; give files of one kind", path)
    return _KINDS[kinds[0]][1]


_KINDS: dict[str, tuple[Callable[[Path], bool], Callable[[Sequence[Path], Options], Opened]]] = {
    "a table (.csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather)": (tables.is_table, open_tables),
    "FASTA (.fa, .fasta, .fna, .faa)": (fasta.is_fasta, open_fasta),
    "numpy (.npy, .npz)": (arrays.is_arrays, open_arrays),
    "a folder or archive (.zip, .tar.gz) of texts, images or sounds by class": (is_folder, open_folder),
}

TASKS = (
    Definition(
        name="own",
        title="a class or a value for every sequence of your files",
        length=f"up to {LONGEST}",
        classes="from the file",
        origin="your files: csv, tsv, jsonl, parquet, Arrow, FASTA, numpy, folders of texts, images or sounds by class",
        load=load,
    ),
)

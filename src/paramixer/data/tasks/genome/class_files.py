"""A folder of FASTA files, one for each class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats import fasta
from paramixer.data.storage.prepared import Preparation

# Transcripts are far shorter than this and chromosomes far longer; and so many windows leave several to each split.
_LONG, _LONG_IN_WINDOWS = 200_000, 20
# A file with a larger share of letters that are not bases is something else, such as protein.
_MOST_UNKNOWN = 0.1


class Survey(NamedTuple):
    """The result of a first reading of a class's file."""

    name: str
    """Name of the class."""
    path: Path
    lengths: NDArray[np.int64]
    """Length of every record."""
    unknown: int
    """How many letters stand for no base."""


def find_files(source: Path, classes: Sequence[str] | None) -> dict[str, Path]:
    """Return the file of each class, in the given order or sorted."""
    if not source.is_dir():
        raise DataError("not a folder; every file is a class, so give a folder with two or more of them", source)
    files: dict[str, Path] = {}
    for path in sorted(source.iterdir()):
        if path.name.startswith(".") or not fasta.is_fasta(path) or not path.is_file():
            continue
        name = re.sub(r"\.gz$", "", path.name, flags=re.IGNORECASE).rpartition(".")[0]
        if name in files:
            raise DataError(f"class {name!r} is also in {files[name].name}; remove one of them", path)
        files[name] = path
    for name in classes or ():
        if name not in files:
            raise DataError(
                f"there is no FASTA file for class {name!r}; there are {', '.join(files) or 'none'}", source
            )
    chosen = {name: files[name] for name in (sorted(files) if classes is None else classes)}
    if len(chosen) < 2:
        endings = ", ".join(fasta.SUFFIXES)
        raise DataError(
            f"FASTA files ({endings}, also .gz): {', '.join(chosen) or 'none'}; every file is a class, and two or more "
            "are needed",
            source,
        )
    return chosen


def survey_file(preparation: Preparation, name: str, path: Path, strict: bool) -> Survey:
    """Read the file of a class once."""
    # Unlike a loop, map holds no record while the next one is read, and each may be a chromosome.
    sizes = map(_measure, fasta.read_records(path, strict))
    lengths, unknown = np.array(list(preparation.track(sizes, f"reading {path.name}")), np.int64).T
    if unknown.sum() > _MOST_UNKNOWN * lengths.sum():
        raise DataError(f"{unknown.sum()} of {lengths.sum()} letters are not bases; is it protein?", path)
    return Survey(name, path, lengths, int(unknown.sum()))


def _measure(record: fasta.Record) -> tuple[int, int]:
    return len(record.sequence), record.unknown


def are_chromosomes(lengths: NDArray[np.int64], length: int) -> bool:
    """Return whether a file's records are so long that windows should be cut from them.

    They are if at least half of the file's bases are in records of 200 000 bases and 20 windows or more.
    """
    long = lengths >= max(_LONG, _LONG_IN_WINDOWS * length)
    return bool(2 * lengths[long].sum() >= lengths.sum())

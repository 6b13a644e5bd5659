"""Folders and archives with a folder for each class: ``[SPLIT/]CLASS/NAME``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from paramixer.data.formats import archives
from paramixer.data.splits import SPLIT_NAMES


class ClassFile(NamedTuple):
    """A file in the folder of its class."""

    name: str
    """Its path inside the source, with "/" between parts."""
    label: str
    """The name of the folder in which it is."""
    split: str | None
    """The split for which the folder above is named; None if it is not named for one."""
    read: Callable[[], bytes]
    """Reads the file."""


def walk(source: Path, suffixes: Sequence[str]) -> Iterator[ClassFile]:
    """Yield the files whose names have one of these endings; files outside of a class's folder are left out."""
    for name, read in archives.walk(source):
        parts = PurePosixPath(name).parts
        if not name.lower().endswith(tuple(suffixes)) or len(parts) < 2:
            continue
        # A list beside the folders of the classes, such as IMDB's list of addresses.
        if parts[-2].lower() in SPLIT_NAMES:
            continue
        split = SPLIT_NAMES.get(parts[-3].lower()) if len(parts) > 2 else None
        yield ClassFile(name, parts[-2], split, read)


def count_suffixes(source: Path, suffixes: Sequence[str]) -> Counter[str]:
    """Return how many files of a folder or archive have each of these endings, in lower case."""
    endings = (PurePosixPath(name).suffix.lower() for name, _ in archives.walk(source))
    return Counter(ending for ending in endings if ending in suffixes)

"""Texts with a class each: from folders named for the classes, packed or not, or from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from paramixer.data import task
from paramixer.data.errors import DataError
from paramixer.data.formats import archives, tables
from paramixer.data.progress import Counter
from paramixer.data.samples import Sample, Shares, write_samples
from paramixer.data.storage import cache
from paramixer.data.task import Preparation, Task, TaskInfo

# What sources call the three splits.
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
# IMDB's folder of reviews without a rating.
_WITHOUT_CLASS = "unsup"


def prepared_texts(
    name: str,
    preset: str,
    source: Path,
    *,
    length: int,
    seed: int,
    text: str,
    label: str,
    encoding: str,
    shares: Shares,
    count: Counter,
) -> Task:
    """The task of this name: the first N - 1 characters of every text behind a CLS token, and its class."""
    settings = {"length": length, "seed": seed, "text": text, "label": label, "encoding": encoding, **asdict(shares)}

    def build(preparation: Preparation) -> TaskInfo:
        return write_samples(
            preparation,
            lambda: read_texts(source, text, label, encoding),
            source=str(source),
            name=name,
            preset=preset,
            length=length,
            seed=seed,
            settings=settings,
            shares=shares,
            target="class",
            cls=True,
        )

    return task.prepared(name, {"source": cache.identity(source), **settings}, build, count)


def read_texts(source: Path, text: str, label: str, encoding: str = "utf-8") -> Iterator[Sample]:
    """All texts of a source.

    Args:
        source: a table with these columns, and perhaps the columns split and id; or a folder, .zip, .tar or .tar.gz
            with texts as ``[SPLIT/]CLASS/NAME.txt``.
        text: the column of the texts.
        label: the column of the labels.
        encoding: of text files.
    """
    if tables.is_table(source):
        return _from_table(source, text, label)
    return _from_folders(source, encoding)


def _from_table(source: Path, text: str, label: str) -> Iterator[Sample]:
    there = tables.columns(source)
    extra = [name for name in ("split", "id") if name in there]
    for place, (found, target, *rest) in tables.read(source, [text, label, *extra]):
        if not isinstance(found, str):
            raise DataError(f"column {text!r} holds {type(found).__name__}, not text", place)
        known = dict(zip(extra, rest, strict=True))
        split = None
        if "split" in known:
            split = SPLIT_NAMES.get(str(known["split"]).lower())
            if split is None:
                raise DataError(f"split {known['split']!r}; expected train, validation or test", place)
        yield Sample(found, str(target), place, split, str(known.get("id", "")))


def _from_folders(source: Path, encoding: str) -> Iterator[Sample]:
    for name, read in archives.members(source):
        parts = PurePosixPath(name).parts
        if not name.endswith(".txt") or len(parts) < 2 or parts[-2] == _WITHOUT_CLASS:
            continue
        split = SPLIT_NAMES.get(parts[-3].lower()) if len(parts) > 2 else None
        if parts[-2].lower() in SPLIT_NAMES:
            # Lists beside the classes' folders, such as IMDB's of addresses.
            continue
        try:
            text = read().decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"byte {error.start} is not {encoding}; name the encoding it has", source, name) from error
        yield Sample(text, parts[-2], f"{source}, {name}", split, PurePosixPath(name).stem)

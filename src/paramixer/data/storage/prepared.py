"""Prepared data: three Arrow files and facts.json in a folder of the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from paramixer.data.progress import Progress, no_progress
from paramixer.data.samples import Row
from paramixer.data.splits import SPLITS
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import StoredSequences, Writer
from paramixer.data.task import Task, TaskInfo

INFO_FILE = "facts.json"
"""Holds the task's info and fingerprint."""

T = TypeVar("T")


class Preparation:
    """Writes the splits of a task into a folder."""

    def __init__(self, folder: Path, progress: Progress = no_progress) -> None:
        self._folder, self._progress = folder, progress

    def write(
        self, rows: Iterable[tuple[str, Row]], dtype: str, total: int | None = None, weighted: bool = False
    ) -> None:
        """Write rows, each with the name of its split. They may come in any order and are never held together."""
        with ExitStack() as stack:
            writers = {
                split: stack.enter_context(Writer(self._folder / f"{split}.arrow", dtype, weighted)) for split in SPLITS
            }
            for split, row in self._progress(rows, "writing", total):
                writers[split].add(row)

    def track(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """Yield the same items and show progress."""
        return self._progress(items, what, total)

    def finish(self, info: TaskInfo) -> None:
        """Write the info, and the fingerprint of all that was written."""
        files = [self._folder / f"{split}.arrow" for split in SPLITS]
        document = {**info.document(), "fingerprint": cache.compute_digest(files, info.data_document())}
        (self._folder / INFO_FILE).write_text(json.dumps(document, indent=1), encoding="utf-8")


def prepare(
    name: str, key: dict[str, Any], build: Callable[[Preparation], TaskInfo], progress: Progress = no_progress
) -> Task:
    """Return the task of this key from the cache; ``build`` prepares it if it is not there yet.

    Args:
        name: the task's name.
        key: everything that determines the data; sources by :func:`cache.identify`.
        build: writes the splits and returns the info.
        progress: shows progress.
    """

    def fill(folder: Path) -> None:
        preparation = Preparation(folder, progress)
        preparation.finish(build(preparation))

    return open_prepared(cache.prepare(name, key, fill))


def open_prepared(folder: Path) -> Task:
    """Return the task that was prepared in this folder."""
    document = json.loads((folder / INFO_FILE).read_text(encoding="utf-8"))
    fingerprint = document.pop("fingerprint")
    info = TaskInfo.from_document(document)
    splits = {
        split: StoredSequences(folder / f"{split}.arrow", info.features, info.target == "class") for split in SPLITS
    }
    return Task.from_splits(info, splits, fingerprint)


def count_prepared() -> dict[str, int]:
    """Return how many prepared data sets of each task are in the cache."""
    counts: dict[str, int] = {}
    for file in cache.find_folder().glob(f"*/{INFO_FILE}"):
        name = json.loads(file.read_text(encoding="utf-8"))["name"]
        counts[name] = counts.get(name, 0) + 1
    return counts

"""A task as a model's trainer sees it: three splits of sequences, and everything that must be known about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from paramixer.data.progress import Counter, silent
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import Item, Row, StoredSequences, Writer
from paramixer.data.vocabulary import Vocabulary

SPLITS = ("train", "validation", "test")

T = TypeVar("T")


class Sequences(Protocol):
    """A map-style dataset of :class:`~paramixer.data.storage.arrow.Item`, with what is known without reading it."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Positions of every sequence."""

    @property
    def targets(self) -> NDArray[Any]:
        """Every sequence's class or value."""

    @property
    def full_lengths(self) -> NDArray[np.int64]:
        """Positions of every sequence before it was cut."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Item: ...

    def __getitems__(self, indices: list[int]) -> list[Item]:
        """Several sequences at once."""

    def id(self, index: int) -> str:
        """What the source calls the sequence."""


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What is known about a task beside its sequences; all of it is written down with prepared data."""

    name: str
    """What the task is called."""
    preset: str
    """Which preset the paper used for it, or the nearest one."""
    metric: Literal["accuracy", "error", "roc_auc", "mse"]
    """How predictions are judged. The error of the Adding problem counts answers that are off by 0.04 or more."""
    target: Literal["class", "value"]
    """Whether sequences have classes or values."""
    length: int
    """N, the longest sequence, CLS included; longer ones are cut."""
    classes: tuple[str, ...] = ()
    """Names of the classes, in the order of their numbers."""
    vocabulary: Vocabulary | None = None
    """Of token ids."""
    features: int | None = None
    """Numbers a position, where inputs are real vectors."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the task was loaded with."""
    notes: tuple[str, ...] = ()
    """What a user should know: duplicates, cut sequences, and the like."""

    @property
    def outputs(self) -> int:
        """How many numbers a model must answer with."""
        return len(self.classes) if self.target == "class" else 1

    def document(self) -> dict[str, Any]:
        """As it stands in a JSON file."""
        plain = {key: value for key, value in vars(self).items() if key != "vocabulary"}
        return {**plain, "vocabulary": self.vocabulary and self.vocabulary.document()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TaskInfo:
        """What :meth:`document` wrote."""
        vocabulary = document["vocabulary"] and Vocabulary.from_document(document["vocabulary"])
        tuples = {key: tuple(document[key]) for key in ("classes", "notes")}
        return cls(**{**document, **tuples, "vocabulary": vocabulary})


@dataclass(frozen=True, kw_only=True)
class Task(TaskInfo):
    """Train, validation and test sequences, and the info about them."""

    train: Sequences
    """To learn from."""
    validation: Sequences
    """To choose by."""
    test: Sequences
    """To be looked at once, at the end."""
    fingerprint: str
    """A hash of data and settings."""

    @classmethod
    def of(cls, info: TaskInfo, splits: Mapping[str, Sequences], fingerprint: str) -> Task:
        """A task with these info and splits."""
        parts: dict[str, Any] = {**vars(info), **splits}
        return cls(**parts, fingerprint=fingerprint)

    @property
    def splits(self) -> dict[str, Sequences]:
        """The three splits by name."""
        return {name: getattr(self, name) for name in SPLITS}


class Preparation:
    """Writes a task's splits into a folder of the cache. A task's ``build`` gets one."""

    def __init__(self, folder: Path, count: Counter) -> None:
        self._folder, self._count = folder, count

    def write(self, rows: Iterable[tuple[str, Row]], dtype: str, total: int | None = None) -> None:
        """Rows, each with the name of its split, in any order; they may be streamed."""
        with ExitStack() as stack:
            writers = {split: stack.enter_context(Writer(self._folder / f"{split}.arrow", dtype)) for split in SPLITS}
            for split, row in self._count(rows, "writing", total):
                writers[split].add(row)

    def count(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """The same items, with progress."""
        return self._count(items, what, total)

    def finish(self, info: TaskInfo) -> None:
        """The info, and the fingerprint of everything written."""
        files = [self._folder / f"{split}.arrow" for split in SPLITS]
        document = info.document()
        document["fingerprint"] = cache.digest(files, document)
        (self._folder / "facts.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def prepared(name: str, key: dict[str, Any], build: Callable[[Preparation], TaskInfo], count: Counter = silent) -> Task:
    """The task of this key from the cache, where ``build`` puts it if it is not there yet.

    Args:
        name: the task's.
        key: everything that decides what is in it; sources by ``cache.identity``.
        build: writes the splits and returns the info.
        count: shows progress.
    """

    def fill(folder: Path) -> None:
        preparation = Preparation(folder, count)
        preparation.finish(build(preparation))

    return opened(cache.prepared(name, key, fill))


def opened(folder: Path) -> Task:
    """The task that was prepared in this folder."""
    document = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    fingerprint = document.pop("fingerprint")
    info = TaskInfo.from_document(document)
    splits = {
        split: StoredSequences(folder / f"{split}.arrow", info.features, info.target == "class") for split in SPLITS
    }
    return Task.of(info, splits, fingerprint)

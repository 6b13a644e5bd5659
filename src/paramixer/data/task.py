"""A task: three splits of sequences, and everything that is known about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from paramixer.data.inferred import describe_inferred
from paramixer.data.samples import Item
from paramixer.data.splits import SPLITS
from paramixer.data.vocabulary import Vocabulary

# These say how to train on the data, or what its user is told of it, not what the data is, so they are no part of its
# fingerprint.
_TRAINING_FIELDS = ("variable_length", "inferred")
# Documents written before this field existed: only the task of user files differs from the default.
_EARLIER_VALUES = {"own": {"variable_length": True}}
# Positions are counted in 32 bits in places.
_MOST = 2**31 - 1
# Fields of earlier versions.
_FORMER_FIELDS = ("recipe",)


class Sequences(Protocol):
    """A map-style dataset of :class:`~paramixer.data.samples.Item`, with what is known without reading it.

    It may also have ``weights``: how much each sequence counts in training, float64, or None for all alike.
    """

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of every sequence."""

    @property
    def targets(self) -> NDArray[Any]:
        """Class or value of every sequence."""

    @property
    def full_lengths(self) -> NDArray[np.int64]:
        """Length of every sequence before it was cut."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Item: ...

    def __getitems__(self, indices: list[int]) -> list[Item]:
        """Return several items at once."""

    def id(self, index: int) -> str:
        """Return the source's name for the sequence."""


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What is known about a task beside its sequences. All of it is saved with prepared data and with a run."""

    name: str
    """Name of the task; "own" for a user's file."""
    preset: str
    """The paper's preset for the task, or the nearest one."""
    metric: Literal["accuracy", "balanced_accuracy", "error", "roc_auc", "mse"]
    """How predictions are scored. The error of the Adding problem counts answers that are off by 0.04 or more."""
    target: Literal["class", "value"]
    """Whether sequences have classes or values."""
    length: int
    """N: the greatest length, CLS included. Longer sequences are cut."""
    classes: tuple[str, ...] = ()
    """Names of the classes, in the order of their numbers; empty for values."""
    vocabulary: Vocabulary | None = None
    """Vocabulary of the token ids; None if inputs are real vectors."""
    features: int | None = None
    """Numbers per position, if inputs are real vectors; None for token ids."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The options with which the task was loaded."""
    notes: tuple[str, ...] = ()
    """What a user should know: duplicates, cut sequences, and the like."""
    variable_length: bool = False
    """Whether each sequence is mixed at its own length; if not, short ones are filled up to N."""
    inferred: dict[str, Any] = field(default_factory=dict)
    """What was found out about a user's files, as JSON: their kind, how many files, input, target, alphabet, split, and
    "cut", how the length was chosen. Empty for other tasks. :meth:`describe` puts it into words."""

    @property
    def display_name(self) -> str:
        """The name in messages: records and caches call a user's file "own", which says nothing to its user."""
        return "your file" if self.name == "own" else self.name

    @property
    def outputs(self) -> int:
        """How many numbers a model answers with."""
        return len(self.classes) if self.target == "class" else 1

    def describe(self) -> list[str]:
        """Return short lines about what was inferred, each with the flag that overrides it; none if nothing was."""
        return describe_inferred(self)

    def document(self) -> dict[str, Any]:
        """Return all fields as JSON can hold them."""
        plain = {key: value for key, value in vars(self).items() if key != "vocabulary"}
        return {**plain, "vocabulary": self.vocabulary and self.vocabulary.document()}

    def data_document(self) -> dict[str, Any]:
        """Return the fields that enter the data's fingerprint."""
        return {key: value for key, value in self.document().items() if key not in _TRAINING_FIELDS}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TaskInfo:
        """Return what :meth:`document` wrote, now or in an earlier version; raise a ValueError for anything else."""
        earlier: dict[str, Any] = dict(_EARLIER_VALUES.get(str(document.get("name")), {}))
        known = {key: value for key, value in document.items() if key not in _FORMER_FIELDS}
        unknown = known.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            raise ValueError(f"there is no field {min(unknown)!r}; a newer version of paramixer may know it")
        info = _validate({**earlier, **known})
        for name, value in (("length", info.length), ("features", info.features)):
            if value is not None and not 1 <= value <= _MOST:
                raise ValueError(f"{name}={value}; it must be 1 to {_MOST:,}")
        if (info.vocabulary is None) == (info.features is None):
            raise ValueError("it must have a vocabulary or features, and not both")
        if (info.target == "class") != bool(info.classes):
            raise ValueError(f"target={info.target!r} with {len(info.classes)} classes; the two contradict each other")
        if len(set(info.classes)) < len(info.classes):
            raise ValueError(f"classes={list(info.classes)}; no two may have one name")
        return info


def _validate(fields: dict[str, Any]) -> TaskInfo:
    """Return fields from JSON as the info, each of its type."""
    import json

    from pydantic import TypeAdapter, ValidationError

    from paramixer.validation import describe_error

    try:
        return TypeAdapter(TaskInfo).validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        raise ValueError(describe_error(error)) from None


@dataclass(frozen=True, kw_only=True)
class Task(TaskInfo):
    """Train, validation and test sequences, and the info about them."""

    train: Sequences
    """Sequences to learn from."""
    validation: Sequences
    """Sequences to choose settings and checkpoints by."""
    test: Sequences
    """Sequences for the final score, used once."""
    fingerprint: str
    """A hash of data and settings."""
    request: dict[str, Any] = field(default_factory=dict)
    """The task's name and the options that load it again; empty for data in memory."""

    @classmethod
    def from_splits(cls, info: TaskInfo, splits: Mapping[str, Sequences], fingerprint: str) -> Task:
        """Return the task of this info with these splits."""
        parts: dict[str, Any] = {**vars(info), **splits}
        return cls(**parts, fingerprint=fingerprint)

    @property
    def splits(self) -> dict[str, Sequences]:
        """The three splits by name."""
        return {name: getattr(self, name) for name in SPLITS}

"""The first reading of a source: what every sample is, except its sequence, and what follows from it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.samples import Sample
from paramixer.data.splits import SPLITS
from paramixer.data.vocabulary import Vocabulary

# Up to this many different whole numbers are classes; more are values.
_MOST_CLASSES = 50
_MOST_VALUE = float(np.finfo(np.float32).max)
_ROUNDING = float(np.finfo(np.float32).eps)
# Targets may lose so much of their spread.
_MOST_ROUNDING = 1e-3


@dataclass
class Census:
    """One entry per sample."""

    splits: list[str | None] = field(default_factory=list)
    """The split that the source names."""
    targets: list[str | float] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    """Hash of the sequence, to find duplicates."""
    features: int | None = None
    """Numbers per position, the same for all samples; None for texts and token ids."""
    ranges: NDArray[np.float32] | None = None
    """Least and greatest number of every feature ``[2, features]``; None for texts and token ids."""

    @property
    def classes(self) -> list[str]:
        """The label of every sample."""
        return [to_label(target) for target in self.targets]

    def widen_ranges(self, numbers: NDArray[np.float32]) -> None:
        """Add the numbers ``[length, features]`` of a sample to the ranges."""
        low, high = numbers.min(0), numbers.max(0)
        if self.ranges is not None:
            low, high = np.minimum(self.ranges[0], low), np.maximum(self.ranges[1], high)
        self.ranges = np.stack([low, high])


def take_census(samples: Iterable[Sample], vocabulary: Vocabulary | None) -> Census:
    """Return the census of all samples.

    Raises:
        DataError: a sample cannot be used; the message begins with its place.
    """
    census = Census()
    for sample in samples:
        if (size := measure_length(sample.sequence, vocabulary)) == 0:
            raise DataError("a sequence of length 0; remove it or fill it", sample.place)
        if sample.split is not None and sample.split not in SPLITS:
            raise DataError(f"a split {sample.split!r}; there are {', '.join(SPLITS)}", sample.place)
        content, features = _read_content(sample, vocabulary)
        if census.splits and features != census.features:
            raise DataError(
                f"{features or 'no'} numbers per position, where others have {census.features or 'none'}", sample.place
            )
        census.features = features
        if features is not None:
            census.widen_ranges(np.frombuffer(content, np.float32).reshape(-1, features))
        census.splits.append(sample.split)
        census.targets.append(_clean_target(sample.target, sample.place))
        census.places.append(sample.place)
        census.lengths.append(size)
        census.hashes.append(hashlib.blake2b(content, digest_size=12).digest())
    return census


def measure_length(sequence: str | NDArray[Any], vocabulary: Vocabulary | None) -> int:
    """Return how many symbols, or positions, a sequence has."""
    if isinstance(sequence, str) and vocabulary is not None and vocabulary.unit != "character":
        return len(sequence.split())
    return len(sequence)


def _read_content(sample: Sample, vocabulary: Vocabulary | None) -> tuple[bytes, int | None]:
    """Return the bytes of a sequence, and its numbers per position if it has any."""
    if isinstance(sample.sequence, str):
        return sample.sequence.encode("utf-8", "surrogatepass"), None
    if vocabulary is not None:
        if sample.sequence.min() < 0 or sample.sequence.max() >= len(vocabulary):
            raise DataError(f"a token id that is not 0 to {len(vocabulary) - 1}", sample.place)
        return np.ascontiguousarray(sample.sequence).tobytes(), None
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(sample.sequence, np.float32)
    if not (finite := np.isfinite(numbers)).all():
        at = int(finite.reshape(len(numbers), -1).all(1).argmin())
        raise DataError(f"number {at + 1} of the sequence is NaN, infinite or too large for float32", sample.place)
    return numbers.tobytes(), 1 if numbers.ndim == 1 else int(numbers.shape[1])


def _clean_target(target: str | float, place: str) -> str | float:
    if isinstance(target, str):
        if not target.strip():
            raise DataError("the label is empty", place)
        return target.strip()
    if not math.isfinite(target):
        raise DataError("the target is NaN or infinite", place)
    return target


def infer_target(targets: list[str | float]) -> Literal["class", "value"]:
    """Return "value" for numbers that are not all whole, or too many different ones to be classes; else "class"."""
    try:
        numbers = {float(target) for target in targets}
    except ValueError:
        return "class"
    whole = all(number.is_integer() for number in numbers)
    return "class" if whole and len(numbers) <= _MOST_CLASSES else "value"


def name_classes(census: Census, splits: list[str], given: tuple[str, ...] | None, source: str) -> tuple[str, ...]:
    """Return the names of the classes: the given ones, or the sorted labels of the training samples.

    Raises:
        DataError: a label is not among them, or train has fewer than two.
    """
    labels = [to_label(target) for target in census.targets]
    training = {label for label, split in zip(labels, splits, strict=True) if split == "train"}
    for label, split, place in zip(labels, splits, census.places, strict=True):
        if given is not None and label not in given:
            raise DataError(f"label {label!r}; there are {', '.join(given)}", place)
        if label not in training:
            raise DataError(
                f"label {label!r} is only in {split}, so no model can learn it; remove it, or add some of it to train",
                place,
            )
    if len(training) < 2:
        raise DataError(f"all targets are {labels[0]!r}; there is nothing to learn", source)
    return given or tuple(sorted(training, key=_sort_key))


def number_targets(census: Census, classes: tuple[str, ...]) -> list[float]:
    """Return the number of every sample's class."""
    numbers = {label: float(number) for number, label in enumerate(classes)}
    return [numbers[to_label(target)] for target in census.targets]


def parse_values(census: Census) -> list[float]:
    """Return every sample's target as a number."""
    values = []
    for target, place in zip(census.targets, census.places, strict=True):
        try:
            value = float(target)
        except ValueError:
            raise DataError(f"the target {target!r} is not a number", place) from None
        if not abs(value) <= _MOST_VALUE:
            raise DataError(f"the target {target!r} is NaN, infinite or too large for float32", place)
        values.append(value)
    low, high = min(values), max(values)
    # What float32 rounds away, seen from the spread.
    if low < high and max(abs(low), abs(high)) * _ROUNDING > _MOST_ROUNDING * (high - low):
        raise DataError(
            f"the targets, from {low:.17g} to {high:.17g}, are too close together for their size: float32 would round "
            f"them; subtract {low:.17g} from each in the file",
            census.places[values.index(high)],
        )
    return values


def to_label(target: str | float) -> str:
    """Return the label of a target; 3.0 and "3" have the same one."""
    return str(int(target)) if isinstance(target, float) and target.is_integer() else str(target)


def _sort_key(label: str) -> tuple[float, str]:
    """Sort numbers by size, before words in alphabetical order."""
    try:
        number = float(label)
    except ValueError:
        return math.inf, label
    return (math.inf if math.isnan(number) else number), label

"""From raw samples, as any reader yields them, to a prepared task: splits, classes, vocabulary, duplicates.

The samples are read two or three times and never held: to see what there is, which characters train has (where no
vocabulary is given), and to write it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.rng import permutation
from paramixer.data.storage.arrow import Row
from paramixer.data.task import SPLITS, Preparation, TaskInfo
from paramixer.data.vocabulary import UNKNOWN, Vocabulary

# So many different whole numbers are still classes; more are values.
_MOST_CLASSES = 50
_MOST_VALUE = float(np.finfo(np.float32).max)


class Sample(NamedTuple):
    """One sequence as it stands in a source."""

    sequence: str | NDArray[Any]
    """Text, numbers ``[length, features]``, or token ids ``[length]`` of a vocabulary of numbers."""
    target: str | float
    """The label as it is written, or a number."""
    place: str
    """File and line or row, for messages."""
    split: str | None = None
    """train, validation or test, where the source says so."""
    id: str = ""
    """What the source calls it."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What is cut from a source that does not say, by a random order that follows from the seed."""

    validation: float = 0.1
    """Of all samples where nothing is split, else of the training samples where there is no validation split."""
    test: float = 0.1
    """Of all samples, where nothing is split."""

    def __post_init__(self) -> None:
        if not (0 < self.validation < 1 and 0 < self.test < 1 and self.validation + self.test < 1):
            raise DataError(f"shares of {self.validation} and {self.test}; both must be in (0, 1), and their sum too")


@dataclass
class Census:
    """What the first reading found."""

    splits: list[str | None] = field(default_factory=list)
    targets: list[str | float] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    features: int | None = None


def write_samples(
    preparation: Preparation,
    read: Callable[[], Iterable[Sample]],
    *,
    source: str,
    name: str,
    preset: str,
    length: int | None,
    seed: int,
    settings: dict[str, Any],
    shares: Shares,
    metric: Literal["accuracy", "error", "roc_auc", "mse"] | None = None,
    target: Literal["class", "value"] | None = None,
    vocabulary: Vocabulary | None = None,
    cls: bool = False,
    strict: bool = False,
    classes: tuple[str, ...] | None = None,
    longest: int | None = None,
) -> TaskInfo:
    """Write all samples and say what they are.

    Args:
        preparation: where to.
        read: reads the source from the beginning.
        source: its name, for messages.
        name: the task's.
        preset: the preset's name.
        length: N; None for the longest sequence, at most ``longest``.
        seed: of the cut into splits.
        settings: to be written down.
        shares: of what is cut from the source.
        metric: by default accuracy for classes and mse for values.
        target: by default told from the targets.
        vocabulary: of texts; by default the sorted characters of the training texts.
        cls: whether a CLS token stands in front, for a vocabulary that is made here.
        strict: whether characters that do not stand in train are refused, for a vocabulary that is made here.
        classes: their names in order; by default the sorted labels of the training samples.
        longest: see length.
    """
    census = _census(preparation.count(read(), f"reading {source}"), vocabulary)
    if not census.splits:
        raise DataError("there is not a single sequence in it", source)
    splits = _assigned(census, shares, seed, source)
    kind = target or _told(census.targets)
    names = _classes(census, splits, classes, source) if kind == "class" else ()
    targets = _numbered(census, names) if kind == "class" else _values(census)
    if census.features is None and vocabulary is None:
        again = _paired(preparation.count(read(), "characters", len(splits)), splits, source)
        vocabulary = _vocabulary((sample for sample, split in again if split == "train"), cls, strict)
    if length is None:
        most = max(census.lengths) + (vocabulary is not None and vocabulary.cls is not None)
        length = max(2, most if longest is None else min(most, longest))
    info = TaskInfo(
        name=name,
        preset=preset,
        metric=metric or ("accuracy" if kind == "class" else "mse"),
        target=kind,
        length=length,
        classes=names,
        vocabulary=vocabulary if census.features is None else None,
        features=census.features,
        settings=settings,
        notes=_notes(census, splits),
    )
    dtype = "float32" if info.vocabulary is None else info.vocabulary.dtype
    strange: Counter[str] = Counter()
    preparation.write(_rows(_paired(read(), splits, source), targets, info, strange), dtype, len(splits))
    unknown = [
        f"{strange[split]} of the {splits.count(split)} {split} sequences have symbols that are not in the vocabulary"
        for split in SPLITS
        if strange[split]
    ]
    return dataclasses.replace(info, notes=(*info.notes, *unknown))


def _census(samples: Iterable[Sample], vocabulary: Vocabulary | None) -> Census:
    census = Census()
    for sample in samples:
        if (size := _size(sample.sequence, vocabulary)) == 0:
            raise DataError("a sequence of length 0; leave it out or give it something to read", sample.place)
        if sample.split is not None and sample.split not in SPLITS:
            raise DataError(f"a split {sample.split!r}; there are {', '.join(SPLITS)}", sample.place)
        raw, features = _raw(sample, vocabulary)
        if census.splits and features != census.features:
            raise DataError(
                f"{features or 'no'} numbers a position, where others have {census.features or 'none'}", sample.place
            )
        census.features = features
        census.splits.append(sample.split)
        census.targets.append(_clean(sample.target, sample.place))
        census.places.append(sample.place)
        census.lengths.append(size)
        census.hashes.append(hashlib.blake2b(raw, digest_size=12).digest())
    return census


def _raw(sample: Sample, vocabulary: Vocabulary | None) -> tuple[bytes, int | None]:
    """What tells the sequence from others, and how many numbers a position has, where it has any."""
    if isinstance(sample.sequence, str):
        return sample.sequence.encode("utf-8", "surrogatepass"), None
    if vocabulary is not None:
        if sample.sequence.min() < 0 or sample.sequence.max() >= len(vocabulary):
            raise DataError(f"a token id that is not 0 to {len(vocabulary) - 1}", sample.place)
        return np.ascontiguousarray(sample.sequence).tobytes(), None
    with np.errstate(over="ignore"):
        kept = np.ascontiguousarray(sample.sequence, np.float32)
    if not (finite := np.isfinite(kept)).all():
        at = int(finite.reshape(len(kept), -1).all(1).argmin())
        raise DataError(f"number {at + 1} of the sequence is NaN, infinite or too large for float32", sample.place)
    return kept.tobytes(), 1 if kept.ndim == 1 else int(kept.shape[1])


def _size(sequence: str | NDArray[Any], vocabulary: Vocabulary | None) -> int:
    words = isinstance(sequence, str) and vocabulary is not None and vocabulary.unit != "character"
    return len(sequence.split()) if words and isinstance(sequence, str) else len(sequence)


def _clean(target: str | float, place: str) -> str | float:
    if isinstance(target, str):
        if not target.strip():
            raise DataError("the label is empty", place)
        return target.strip()
    if not math.isfinite(target):
        raise DataError("the target is NaN or infinite", place)
    return target


def _assigned(census: Census, shares: Shares, seed: int, source: str) -> list[str]:
    """The split of every sample: the source's own, and what is cut from it."""
    count = len(census.splits)
    order = permutation(count, seed)
    if all(split is None for split in census.splits):
        cuts = round(count * shares.validation), round(count * shares.test)
        if count < 3:
            raise DataError(f"only {count} sequences; train, validation and test need one each", source)
        validation, test = (max(1, cut) for cut in cuts)
        if validation + test >= count:
            raise DataError(f"only {count} sequences, of which none would be left for train; cut less", source)
        split_of = np.full(count, "train", object)
        split_of[order[:validation]] = "validation"
        split_of[order[validation : validation + test]] = "test"
        return [str(split) for split in split_of]
    if None in census.splits:
        raise DataError("some samples name their split and some do not", census.places[census.splits.index(None)])
    found = [str(split) for split in census.splits]
    for needed in ("train", "test"):
        if needed not in found:
            raise DataError(f"no sequence says that it is of the {needed} split", source)
    if "validation" not in found:
        training = [index for index in order.tolist() if found[index] == "train"]
        cut = max(1, round(len(training) * shares.validation))
        if cut >= len(training):
            raise DataError(f"only {len(training)} training sequences; validation is cut from them", source)
        for index in training[:cut]:
            found[index] = "validation"
    return found


def _told(targets: list[str | float]) -> Literal["class", "value"]:
    """Values are numbers that are not all whole, or too many different ones to be classes."""
    try:
        numbers = {float(target) for target in targets}
    except ValueError:
        return "class"
    whole = all(number.is_integer() for number in numbers)
    return "class" if whole and len(numbers) <= _MOST_CLASSES else "value"


def _label(target: str | float) -> str:
    """3.0 and "3" are one label."""
    return str(int(target)) if isinstance(target, float) and target.is_integer() else str(target)


def _classes(census: Census, splits: list[str], given: tuple[str, ...] | None, source: str) -> tuple[str, ...]:
    labels = [_label(target) for target in census.targets]
    known = {label for label, split in zip(labels, splits, strict=True) if split == "train"}
    for label, split, place in zip(labels, splits, census.places, strict=True):
        if given is not None and label not in given:
            raise DataError(f"label {label!r}; there are {', '.join(given)}", place)
        if label not in known:
            raise DataError(
                f"label {label!r} is seen only in {split}, so that no model can learn it; "
                "leave it out, or give train some of it",
                place,
            )
    if len(known) < 2:
        raise DataError(f"all targets are {labels[0]!r}; there is nothing to tell apart", source)
    return given or tuple(sorted(known, key=_natural))


def _natural(label: str) -> tuple[float, str]:
    """Numbers by size, before words by their letters."""
    try:
        number = float(label)
    except ValueError:
        return math.inf, label
    return (math.inf if math.isnan(number) else number), label


def _notes(census: Census, splits: list[str]) -> tuple[str, ...]:
    where: dict[bytes, set[str]] = {}
    for found, split in zip(census.hashes, splits, strict=True):
        where.setdefault(found, set()).add(split)
    notes = []
    for held_out, others in (("validation", {"train"}), ("test", {"train", "validation"})):
        own = [found for found, split in zip(census.hashes, splits, strict=True) if split == held_out]
        if again := sum(bool(where[found] & others) for found in own):
            notes.append(f"{again} of the {len(own)} {held_out} sequences also stand in {' or '.join(sorted(others))}")
    repeated = Counter(h for h, split in zip(census.hashes, splits, strict=True) if split == "train")
    if more := sum(repeated.values()) - len(repeated):
        notes.append(f"{more} training sequences stand in train more than once")
    return tuple(notes)


def _numbered(census: Census, classes: tuple[str, ...]) -> list[float]:
    numbers = {label: float(number) for number, label in enumerate(classes)}
    return [numbers[_label(target)] for target in census.targets]


def _values(census: Census) -> list[float]:
    values = []
    for target, place in zip(census.targets, census.places, strict=True):
        try:
            value = float(target)
        except ValueError:
            raise DataError(f"the target {target!r} is no number", place) from None
        if not abs(value) <= _MOST_VALUE:
            raise DataError(f"the target {target!r} is NaN, infinite or too large for float32", place)
        values.append(value)
    return values


def _paired(samples: Iterable[Sample], splits: list[str], source: str) -> Iterator[tuple[Sample, str]]:
    """The samples once more, each with its split."""
    ends = object()
    for sample, split in zip_longest(samples, splits, fillvalue=ends):
        if not isinstance(sample, Sample) or not isinstance(split, str):
            raise DataError("it changed while it was read; try again", source)
        yield sample, split


def _vocabulary(training: Iterable[Sample], cls: bool, strict: bool) -> Vocabulary:
    characters: set[str] = set()
    for sample in training:
        characters.update(sample.sequence)
    found = Vocabulary.of_characters(characters, cls)
    if not strict:
        return found
    return dataclasses.replace(found, symbols=tuple(symbol for symbol in found.symbols if symbol != UNKNOWN))


def _rows(
    samples: Iterable[tuple[Sample, str]], targets: list[float], info: TaskInfo, strange: Counter[str]
) -> Iterator[tuple[str, Row]]:
    vocabulary = info.vocabulary
    in_front = int(vocabulary is not None and vocabulary.cls is not None)
    # Where a letter of its own, such as N, stands for the unknown, it is nothing to speak of.
    marks_unknown = vocabulary is not None and UNKNOWN in vocabulary.symbols
    for (sample, split), target in zip(samples, targets, strict=True):
        full = in_front + _size(sample.sequence, vocabulary)
        if vocabulary is not None and isinstance(sample.sequence, str):
            try:
                sequence = vocabulary.encode(sample.sequence, info.length)
            except ValueError as error:
                raise DataError(str(error), sample.place) from error
            if marks_unknown:
                strange[split] += bool((sequence == vocabulary.unknown).any())
        else:
            assert not isinstance(sample.sequence, str)
            sequence = sample.sequence[: info.length]
        yield split, Row(sequence, target, full, sample.id)

"""From samples, as any reader yields them, to prepared data: splits, classes, vocabulary, duplicates.

The source is read two or three times and never held in memory: for the census, for the characters of train (if no
vocabulary is given), and to write the sequences.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paramixer.data.census import (
    Census,
    infer_target,
    measure_length,
    name_classes,
    number_targets,
    parse_values,
    take_census,
)
from paramixer.data.errors import DataError
from paramixer.data.notes import find_conflicts, find_constants, find_duplicates, find_rare_classes
from paramixer.data.samples import Row, Sample
from paramixer.data.splits import SPLITS, Shares, assign_splits
from paramixer.data.storage.prepared import Preparation
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import UNKNOWN, Vocabulary

# Share of the sequences that are not cut where the longest is more than so many times as long as they are. N is then a
# multiple of the last number.
_QUANTILE, _FAR, _ROUNDED = 0.99, 1.5, 64


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
    weighted: bool = False,
    inspect: bool = False,
) -> TaskInfo:
    """Write all samples and return the info about them.

    Args:
        preparation: writes the sequences.
        read: reads the source from the beginning.
        source: its name, for messages.
        name: the task's name.
        preset: the preset's name.
        length: N; None for the longest sequence, or, of an inspected source, see :func:`choose_length`.
        seed: of the random order in which splits are cut.
        settings: saved with the info.
        shares: of the splits that the source lacks.
        metric: by default accuracy for classes and mse for values.
        target: by default inferred from the targets.
        vocabulary: of texts or token ids; by default the sorted characters of the training texts.
        cls: whether a vocabulary that is made here has a CLS token, which comes first in every sequence.
        strict: whether, with a vocabulary that is made here, characters that are not in train are an error.
        classes: their names in order; by default the sorted labels of the training samples.
        longest: N is at most this unless a length is given.
        weighted: whether samples have weights, which are stored with them.
        inspect: whether the source is unknown: splits are cut class by class, outliers do not decide the length, and
            rare classes, conflicting targets and constant features are noted.
    """
    census = take_census(preparation.track(read(), f"reading {source}"), vocabulary)
    if not census.splits:
        raise DataError("there is not a single sequence in it", source)
    kind = target or infer_target(census.targets)
    classes_to_cut = census.classes if inspect and kind == "class" else None
    splits = assign_splits(census.splits, census.places, shares, seed, source, classes_to_cut)
    names = name_classes(census, splits, classes, source) if kind == "class" else ()
    targets = number_targets(census, names) if kind == "class" else parse_values(census)
    if census.features is None and vocabulary is None:
        pairs = _pair_with_splits(preparation.track(read(), "characters", len(splits)), splits, source)
        vocabulary = _collect_vocabulary((sample for sample, split in pairs if split == "train"), cls, strict)
    lengths = _measure_all(census, vocabulary)
    chosen = length or choose_length(lengths, longest, inspect)
    inferred: dict[str, Any] = {}
    if inspect:
        inferred = {"cut": _describe_cut(lengths, chosen, length is not None), **_describe_splits(census, kind)}
    info = TaskInfo(
        name=name,
        preset=preset,
        metric=metric or ("accuracy" if kind == "class" else "mse"),
        target=kind,
        length=chosen,
        classes=names,
        vocabulary=vocabulary if census.features is None else None,
        features=census.features,
        settings=settings,
        notes=_find_notes(census, splits, kind) if inspect else find_duplicates(census, splits),
        inferred=inferred,
    )
    dtype = "float32" if info.vocabulary is None else info.vocabulary.dtype
    unknown: Counter[str] = Counter()
    rows = _encode_samples(_pair_with_splits(read(), splits, source), targets, info, unknown)
    preparation.write(rows, dtype, len(splits), weighted)
    notes = [
        f"{unknown[split]} of the {splits.count(split)} {split} sequences have symbols that are not in the vocabulary"
        for split in SPLITS
        if unknown[split]
    ]
    return dataclasses.replace(info, notes=(*info.notes, *notes))


def choose_length(lengths: NDArray[np.int64], most: int | None = None, spare_outliers: bool = False) -> int:
    """Return N for sequences of these lengths, CLS included.

    It is the longest, unless that is far longer than the others: every position costs time, also of the model that
    is sized by N. Then it is the length that 99 % of the sequences do not exceed, rounded up.

    Args:
        lengths: of all sequences.
        most: N is at most this.
        spare_outliers: whether sequences that are far longer than the others are cut.
    """
    chosen = int(lengths.max())
    if spare_outliers:
        usual = int(np.quantile(lengths, _QUANTILE, method="inverted_cdf"))
        if chosen > _FAR * usual:
            chosen = min(chosen, -(-usual // _ROUNDED) * _ROUNDED if usual > _ROUNDED else usual)
    return max(2, chosen if most is None else min(chosen, most))


def _measure_all(census: Census, vocabulary: Vocabulary | None) -> NDArray[np.int64]:
    return np.array(census.lengths, np.int64) + (vocabulary is not None and vocabulary.cls is not None)


def _describe_cut(lengths: NDArray[np.int64], chosen: int, given: bool) -> dict[str, Any]:
    """Return why the length was chosen and what is cut; see :attr:`TaskInfo.inferred`."""
    longest, cut = int(lengths.max()), int((lengths > chosen).sum())
    reason = "longest" if not cut else "usual" if cut <= (1 - _QUANTILE) * len(lengths) + 1 else "most"
    return {"reason": "given" if given else reason, "sequences": cut, "of": len(lengths), "longest": longest}


def _describe_splits(census: Census, kind: str) -> dict[str, Any]:
    """Return how splits are cut; see :attr:`TaskInfo.inferred`."""
    return {"stratified": kind == "class", "validation_cut": "validation" not in census.splits}


def _find_notes(census: Census, splits: list[str], kind: str) -> tuple[str, ...]:
    notes = (*find_duplicates(census, splits), *find_conflicts(census), *find_constants(census))
    return (*notes, *find_rare_classes(census, splits)) if kind == "class" else notes


def _pair_with_splits(samples: Iterable[Sample], splits: list[str], source: str) -> Iterator[tuple[Sample, str]]:
    """Yield the samples of another reading, each with its split."""
    missing = object()
    for sample, split in zip_longest(samples, splits, fillvalue=missing):
        if not isinstance(sample, Sample) or not isinstance(split, str):
            raise DataError("it changed while it was read; try again", source)
        yield sample, split


def _collect_vocabulary(training: Iterable[Sample], cls: bool, strict: bool) -> Vocabulary:
    characters: set[str] = set()
    for sample in training:
        characters.update(sample.sequence)
    vocabulary = Vocabulary.from_characters(characters, cls)
    if not strict:
        return vocabulary
    return dataclasses.replace(vocabulary, symbols=tuple(symbol for symbol in vocabulary.symbols if symbol != UNKNOWN))


def _encode_samples(
    samples: Iterable[tuple[Sample, str]], targets: list[float], info: TaskInfo, unknown: Counter[str]
) -> Iterator[tuple[str, Row]]:
    """Yield every sample's row with its split, and count in ``unknown`` the sequences that have unknown symbols."""
    vocabulary = info.vocabulary
    added = int(vocabulary is not None and vocabulary.cls is not None)
    # If a real letter such as N stands for the unknown, it is not worth a note.
    counts_unknown = vocabulary is not None and UNKNOWN in vocabulary.symbols
    for (sample, split), target in zip(samples, targets, strict=True):
        full = added + measure_length(sample.sequence, vocabulary)
        if vocabulary is not None and isinstance(sample.sequence, str):
            try:
                sequence = vocabulary.encode(sample.sequence, info.length)
            except ValueError as error:
                raise DataError(str(error), sample.place) from error
            if counts_unknown:
                unknown[split] += bool((sequence == vocabulary.unknown).any())
        else:
            assert not isinstance(sample.sequence, str)
            sequence = sample.sequence[: info.length]
        yield split, Row(sequence, target, full, sample.id, sample.weight)

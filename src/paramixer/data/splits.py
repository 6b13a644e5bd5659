"""Train, validation and test: what sources call them, and how samples are assigned to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paramixer.data.errors import DataError, check_integer
from paramixer.data.rng import permutation

SPLITS = ("train", "validation", "test")
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""The split for each name that sources use, in lower case."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares that are cut for validation and test from a source without splits, in a random order."""

    validation: float = 0.1
    """Of all samples if the source has no splits, else of the training samples if it has no validation split."""
    test: float = 0.1
    """Of all samples, if the source has no splits."""

    def __post_init__(self) -> None:
        for name in ("validation", "test"):
            share = getattr(self, name)
            # NaN fails the comparison.
            if isinstance(share, bool | str) or not 0 < share < 1:
                raise DataError(f"{name}={share}; it is a share of the samples, between 0 and 1")
        if self.validation + self.test >= 1:
            raise DataError(f"validation={self.validation} and test={self.test} leave nothing to train on; lower them")


def choose_sizes(given: Mapping[str, int | None], default: Mapping[str, int]) -> dict[str, int]:
    """Return how many sequences each split of a generated task has.

    Args:
        given: the user's numbers; None for the default.
        default: the task's numbers.
    """
    return {
        split: default[split] if (size := given[split]) is None else check_integer(split, size, 1) for split in SPLITS
    }


def parse_split(value: object, place: str) -> str:
    """Return train, validation or test for what a source calls it."""
    split = SPLIT_NAMES.get(str(value).strip().lower())
    if split is None:
        raise DataError(f"split {str(value)!r}; expected train, validation or test", place)
    return split


def assign_splits(
    named: Sequence[str | None], places: Sequence[str], shares: Shares, seed: int, source: str
) -> list[str]:
    """Return the split of every sample: the source's own, and what is cut for the splits that it lacks.

    Args:
        named: the split that the source names for each sample.
        places: where each sample stands, for messages.
        shares: of the splits that are cut.
        seed: of the random order in which they are cut.
        source: its name, for messages.
    """
    order = permutation(len(named), seed)
    if all(split is None for split in named):
        return _cut_all(order.tolist(), shares, source)
    if None in named:
        raise DataError("some samples name their split and some do not", places[list(named).index(None)])
    splits = [str(split) for split in named]
    for split in ("train", "test"):
        if split not in splits:
            raise DataError(f"no sequence is in the {split} split", source)
    if "validation" not in splits:
        training = [index for index in order.tolist() if splits[index] == "train"]
        size = max(1, round(len(training) * shares.validation))
        if size >= len(training):
            raise DataError(f"only {len(training)} training sequences; validation is cut from them", source)
        for index in training[:size]:
            splits[index] = "validation"
    return splits


def _cut_all(order: list[int], shares: Shares, source: str) -> list[str]:
    count = len(order)
    if count < 3:
        raise DataError(f"only {count} sequences; train, validation and test need one each", source)
    validation, test = (max(1, round(count * share)) for share in (shares.validation, shares.test))
    if validation + test >= count:
        raise DataError(f"only {count} sequences, and none is left for train; lower validation and test", source)
    splits = np.full(count, "train", object)
    splits[order[:validation]] = "validation"
    splits[order[validation : validation + test]] = "test"
    return [str(split) for split in splits]

"""Train, validation and test: what sources call them, and how samples are assigned to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    if not names_split(value):
        raise DataError(
            f"split {str(value)!r}; expected train, validation or test; change it, or rename what holds the splits to "
            "have them cut at random",
            place,
        )
    return SPLIT_NAMES[_clean(value)]


def names_split(value: object) -> bool:
    """Return whether a value is what sources call train, validation or test."""
    return _clean(value) in SPLIT_NAMES


def _clean(value: object) -> str:
    return str(value).strip().lower()


def assign_splits(
    named: Sequence[str | None],
    places: Sequence[str],
    shares: Shares,
    seed: int,
    source: str,
    classes: Sequence[str] | None = None,
) -> list[str]:
    """Return the split of every sample: the source's own, and what is cut for the splits that it lacks.

    Args:
        named: the split that the source names for each sample.
        places: where each sample stands, for messages.
        shares: of the splits that are cut.
        seed: of the random order in which they are cut.
        source: its name, for messages.
        classes: the class of each sample, of which every split that is cut gets the same share; see
            :func:`_cut_classes`. None to cut whatever the classes are.
    """
    order = permutation(len(named), seed)
    if all(split is None for split in named):
        return _cut_all(order.tolist(), shares, source, classes)
    if None in named:
        raise DataError("some samples name their split and some do not", places[list(named).index(None)])
    splits = [str(split) for split in named]
    for split in ("train", "test"):
        if split not in splits:
            raise DataError(
                f"no sequence is in the {split} split; name some {split}, or rename what holds the splits to have all "
                "cut at random",
                source,
            )
    if "validation" not in splits:
        training = [index for index in order.tolist() if splits[index] == "train"]
        size = max(1, round(len(training) * shares.validation))
        if size >= len(training):
            raise DataError(f"only {len(training)} training sequences; validation is cut from them", source)
        chosen = training[:size]
        if classes is not None:
            (chosen,) = _cut_classes(training, classes, {"validation": size}).values()
        for index in chosen:
            splits[index] = "validation"
    return splits


def _cut_all(order: list[int], shares: Shares, source: str, classes: Sequence[str] | None) -> list[str]:
    count = len(order)
    if count < 3:
        raise DataError(f"only {count} sequences; train, validation and test need one each", source)
    validation, test = (max(1, round(count * share)) for share in (shares.validation, shares.test))
    if validation + test >= count:
        raise DataError(f"only {count} sequences, and none is left for train; lower validation and test", source)
    parts = {"validation": order[:validation], "test": order[validation : validation + test]}
    if classes is not None:
        parts = _cut_classes(order, classes, {"test": test, "validation": validation})
        empty = [split for split in parts if not parts[split]]
        if empty:
            raise DataError(
                f"{count} sequences have {len(set(classes))} classes, too few of each for {' and '.join(empty)}: train "
                "keeps one of every class. Is the column of labels the right one? For numbers give --target value",
                source,
            )
    splits = ["train"] * count
    for split, indices in parts.items():
        for index in indices:
            splits[index] = split
    return splits


def _cut_classes(order: list[int], classes: Sequence[str], sizes: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the indices that each split takes: of every class its share, and the rest stays in train.

    Train keeps one example of a class, then each split gets one in the order of ``sizes``, as far as the examples
    reach: a class with a single example is in train only. Splits may so become larger than asked for where many
    classes are small.

    Args:
        order: indices of samples, in the random order in which they are taken.
        classes: the class of each sample.
        sizes: how many samples each split should have.
    """
    members: dict[str, list[int]] = {}
    for index in order:
        members.setdefault(classes[index], []).append(index)
    taken = dict.fromkeys(members, 0)
    parts: dict[str, list[int]] = {}
    for number, (split, size) in enumerate(sizes.items()):
        # One example each for train and for the splits that follow.
        kept = len(sizes) - number
        free = {label: len(indices) - taken[label] for label, indices in members.items()}
        most = {label: max(0, min(count - 1, max(1, count - kept))) for label, count in free.items()}
        quotas = {label: len(indices) * size / len(order) for label, indices in members.items()}
        counts = {label: min(most[label], max(1, int(quota))) for label, quota in quotas.items()}
        # What rounding down left over goes to the classes that it cut most.
        for label in sorted(members, key=lambda label: (counts[label] - quotas[label], label)):
            if sum(counts.values()) < size and counts[label] < most[label]:
                counts[label] += 1
        parts[split] = [
            index
            for label, indices in members.items()
            for index in indices[taken[label] : taken[label] + counts[label]]
        ]
        taken = {label: taken[label] + counts[label] for label in members}
    return parts

"""Folds for cross-validation: every sequence of a task is in the test split of one fold."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.rng import permutation
from paramixer.data.samples import Item
from paramixer.data.splits import SPLITS
from paramixer.data.task import Sequences, Task

_VALIDATION = 0.1


class ChosenSequences:
    """Some sequences of several splits."""

    def __init__(self, parts: Sequence[Sequences], indices: NDArray[np.int64]) -> None:
        self._parts, self._indices = tuple(parts), indices
        self._firsts = np.cumsum([0, *map(len, parts)])
        self.lengths: NDArray[np.int64] = self._gather("lengths")
        self.full_lengths: NDArray[np.int64] = self._gather("full_lengths")
        self.targets: NDArray[Any] = self._gather("targets")
        weighted = any(getattr(part, "weights", None) is not None for part in parts)
        self.weights: NDArray[np.float64] | None = self._gather("weights") if weighted else None

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> Item:
        """Return one sequence and its target."""
        part, place = self._find(index)
        return part[place]

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """Return the source's name for the sequence."""
        part, place = self._find(index)
        return part.id(place)

    def _find(self, index: int) -> tuple[Sequences, int]:
        chosen = int(self._indices[index])
        number = int(np.searchsorted(self._firsts, chosen, "right")) - 1
        return self._parts[number], chosen - int(self._firsts[number])

    def _gather(self, name: str) -> NDArray[Any]:
        together = np.concatenate([np.asarray(getattr(part, name)) for part in self._parts])
        chosen: NDArray[Any] = together[self._indices]
        return chosen


def take_fold(task: Task, fold: int, folds: int, seed: int = 0) -> Task:
    """Return the task whose test split is one fold of all sequences; the others are train and validation.

    All three splits of the task are pooled. Every fold has its share of each class; of values, of small and large ones.

    Args:
        task: the data.
        fold: which one, from 1.
        folds: how many there are.
        seed: of the assignment.
    """
    check_folds(task, folds)
    if not 1 <= fold <= folds:
        raise ValueError(f"fold={fold}; it must be from 1 to {folds}")
    parts = [task.splits[name] for name in SPLITS]
    order = _order_by_target(np.concatenate([np.asarray(part.targets) for part in parts]), seed)
    test = np.arange(len(order)) % folds == fold - 1
    rest = order[~test]
    every = max(2, round(1 / _VALIDATION))
    validation = np.arange(len(rest)) % every == 0
    chosen = {"train": rest[~validation], "validation": rest[validation], "test": order[test]}
    splits: dict[str, Any] = {name: ChosenSequences(parts, np.sort(indices)) for name, indices in chosen.items()}
    text = f"{task.fingerprint} fold {fold} of {folds}, seed {seed}"
    return dataclasses.replace(task, **splits, fingerprint=hashlib.sha256(text.encode()).hexdigest(), request={})


def check_folds(task: Task, folds: int) -> None:
    """Raise a ValueError where the task has too few sequences for so many folds."""
    count = sum(map(len, task.splits.values()))
    if folds < 2 or folds > count // 3:
        raise ValueError(f"folds={folds}; {count} sequences allow 2 to {max(2, count // 3)}")


def _order_by_target(targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """Return all indices by target, in a random order among equal ones: every k-th makes a stratified part."""
    order = permutation(len(targets), seed)
    return order[np.argsort(targets[order], kind="stable")]

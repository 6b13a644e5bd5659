"""Sequences that are drawn when they are asked for, each from (seed, split, index) alone. They need no file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from paramixer.data.rng import STREAMS, bits
from paramixer.data.storage.arrow import Item
from paramixer.data.task import SPLITS, Task, TaskInfo

_SIZES = {"train": 100_000, "validation": 5_000, "test": 5_000}


class Rule(NamedTuple):
    """How one sequence follows from random words."""

    words: Callable[[int], int]
    """How many 64-bit words a sequence of this length takes."""
    draw: Callable[[NDArray[np.uint64], int], NDArray[Any]]
    """The sequence of this length."""
    target: Callable[[NDArray[np.uint64]], float]
    """Its target, which follows from the first two words."""


class GeneratedSequences(Dataset[Item]):
    """One split of a generated task."""

    def __init__(self, rule: Rule, split: str, size: int, length: int, seed: int, classes: bool) -> None:
        self.rule, self.split, self.length, self.seed, self.classes = rule, split, length, seed, classes
        self.lengths = np.full(size, length, np.int64)
        self.full_lengths = self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Item:
        """The sequence of this index, always the same one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        words = bits(self.rule.words(self.length), self.seed, self.split, index % len(self))
        target = self.rule.target(words)
        inputs = torch.from_numpy(self.rule.draw(words, self.length))
        return Item(inputs, torch.tensor(int(target)) if self.classes else torch.tensor(target))

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Several sequences."""
        return [self[index] for index in indices]

    @cached_property
    def targets(self) -> NDArray[Any]:
        """Every sequence's class or value."""
        found = [self.rule.target(bits(2, self.seed, self.split, index)) for index in range(len(self))]
        return np.array(found, np.int64 if self.classes else np.float64)

    def id(self, index: int) -> str:
        """Split, seed and index: all it takes to draw the sequence again."""
        return f"{self.split}/{self.seed}/{index}"


def generated(info: TaskInfo, rule: Rule, seed: int, sizes: Mapping[str, int | None]) -> Task:
    """The task of these info, drawn by this rule."""
    chosen = {split: _SIZES[split] if (size := sizes[split]) is None else size for split in SPLITS}
    for split, size in chosen.items():
        if size != int(size) or size < 1:
            raise ValueError(f"{split}={size}; sequences are drawn, so say how many, at least 1")
    chosen = {split: int(size) for split, size in chosen.items()}
    settings = {**info.settings, "seed": seed, "sizes": chosen}
    known = json.dumps({**info.document(), "settings": settings, "streams": STREAMS}, sort_keys=True)
    splits = {
        split: GeneratedSequences(rule, split, size, info.length, seed, info.target == "class")
        for split, size in chosen.items()
    }
    fingerprint = hashlib.sha256(known.encode()).hexdigest()
    return Task.of(dataclasses.replace(info, settings=settings), splits, fingerprint)


def two_places(word: np.uint64, length: int) -> tuple[int, int]:
    """Two distinct positions from one word, in the order they were drawn."""
    high, low = divmod(int(word), 2**32)
    # 32 bits over a length leave a bias of length / 2^32, far below what could be seen.
    first, second = high % length, low % (length - 1)
    return first, second + (second >= first)

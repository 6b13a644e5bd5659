"""Sequences that are generated on access, each from (seed, split, index) alone. They need no file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import check_integer
from paramixer.data.progress import Progress, no_progress
from paramixer.data.rng import STREAMS, draw_bits
from paramixer.data.samples import Item
from paramixer.data.splits import choose_sizes
from paramixer.data.task import Task, TaskInfo

_SIZES = {"train": 100_000, "validation": 5_000, "test": 5_000}


class Rule(NamedTuple):
    """How a sequence is made from random words. Functions of a module, so that a process can be given them."""

    words: Callable[[int], int]
    """Takes a length; returns how many 64-bit words a sequence of this length needs."""
    draw: Callable[[NDArray[np.uint64], int], NDArray[Any]]
    """Takes the words and a length; returns the sequence."""
    target: Callable[[NDArray[np.uint64]], float]
    """Takes the first two words; returns the target."""


class GeneratedSequences:
    """One split of a generated task."""

    def __init__(self, rule: Rule, split: str, size: int, length: int, seed: int, classes: bool) -> None:
        self.rule, self.split, self.length, self.seed, self.classes = rule, split, length, seed, classes
        self.lengths = np.full(size, length, np.int64)
        self.full_lengths = self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Item:
        """Return the sequence of this index, always the same one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        words = draw_bits(self.rule.words(self.length), self.seed, self.split, index % len(self))
        return Item.from_array(self.rule.draw(words, self.length), self.rule.target(words), self.classes)

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    @cached_property
    def targets(self) -> NDArray[Any]:
        """Class or value of every sequence."""
        targets = [self.rule.target(draw_bits(2, self.seed, self.split, index)) for index in range(len(self))]
        return np.array(targets, np.int64 if self.classes else np.float64)

    def id(self, index: int) -> str:
        """Return split, seed and index, from which the sequence can be generated again."""
        return f"{self.split}/{self.seed}/{index}"


def make_loader(info: TaskInfo, rule: Rule) -> Callable[..., Task]:
    """Return the ``load`` of a generated task.

    Args:
        info: what the task is; its length is the default.
        rule: makes a sequence.
    """

    def load(
        *,
        length: int = info.length,
        seed: int = 0,
        train: int | None = None,
        validation: int | None = None,
        test: int | None = None,
        progress: Progress = no_progress,
    ) -> Task:
        """Return the task at any length; by default with 100 000 / 5 000 / 5 000 sequences."""
        check_integer("length", length, 2)
        sizes = choose_sizes({"train": train, "validation": validation, "test": test}, _SIZES)
        return _generate_task(dataclasses.replace(info, length=length), rule, seed, sizes)

    return load


def _generate_task(info: TaskInfo, rule: Rule, seed: int, sizes: dict[str, int]) -> Task:
    settings = {**info.settings, "seed": seed, "sizes": sizes}
    hashed = json.dumps({**info.data_document(), "settings": settings, "streams": STREAMS}, sort_keys=True)
    splits = {
        split: GeneratedSequences(rule, split, size, info.length, seed, info.target == "class")
        for split, size in sizes.items()
    }
    fingerprint = hashlib.sha256(hashed.encode()).hexdigest()
    return Task.from_splits(dataclasses.replace(info, settings=settings), splits, fingerprint)


def draw_two_positions(word: np.uint64, length: int) -> tuple[int, int]:
    """Return two distinct positions from one random word, in the order in which they were drawn."""
    high, low = divmod(int(word), 2**32)
    # 32 bits over a length leave a bias of length / 2^32, which is negligible.
    first, second = high % length, low % (length - 1)
    return first, second + (second >= first)

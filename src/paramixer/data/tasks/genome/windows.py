"""Windows cut from very long sequences of letters, such as chromosomes, and split by their position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from paramixer.data.rng import bits
from paramixer.data.storage.arrow import Item, StoredSequences

# Training regions are stored in pieces of about so many window starts, so that no whole chromosome is ever encoded.
_PIECE = 1 << 20
_WITHOUT_N = re.compile("[^N]+")


class Cut(NamedTuple):
    """A part of a sequence, for one split."""

    split: str
    begin: int
    end: int


def regions(bases: int, gap: int) -> list[Cut]:
    """Which bases of a sequence are for which split: the first 60 %, the next 20 % and the last 20 %.

    Validation and test give up ``gap`` bases at their beginning, so that no window touches one of another split.
    """
    first, second = bases * 6 // 10, bases * 8 // 10
    return [Cut("train", 0, first), Cut("validation", first + gap, second), Cut("test", second + gap, bases)]


def cuts(sequence: str, length: int, stride: int) -> Iterator[Cut]:
    """What to store of a sequence: windows for validation and test, and for training all that windows may be cut from.

    No cut has an N in it. Those for training are at least one window long and follow each other so that every window
    is in exactly one of them. The gap between splits is as long as a window.
    """
    starts = stride * max(1, _PIECE // stride)
    for split, begin, end in regions(len(sequence), length):
        for found in _WITHOUT_N.finditer(sequence, begin, end):
            step, width = (starts, starts + length - 1) if split == "train" else (length, length)
            for at in range(found.start(), found.end() - length + 1, step):
                yield Cut(split, at, min(at + width, found.end()))


def span(record: str, begin: int, end: int) -> str:
    """How a part of a record is called: its first and last base, counted from 1."""
    return f"{record}:{begin + 1}-{end}"


class WindowSequences(Dataset[Item]):
    """Training windows that start anywhere in the stored cuts, each where its seed and index say.

    The starts of a cut are divided into equal slots of at most ``stride``, and one window starts in each: with a stride
    of the window's length there are as many windows as fit side by side, with a smaller one more, which overlap.
    """

    def __init__(self, stored: StoredSequences, length: int, stride: int, seed: int) -> None:
        self.stored, self.length, self.stride, self.seed = stored, length, stride, seed
        self._starts = stored.lengths - length + 1
        self._slots = -(-self._starts // stride)
        self._firsts = np.cumsum([0, *self._slots])
        self.targets: NDArray[np.int64] = np.repeat(stored.targets, self._slots)
        """Every window's class."""
        self.lengths = np.full(len(self.targets), length, np.int64)
        """All the same."""
        self.full_lengths = self.lengths
        """Nothing is cut off."""

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Item:
        """The window of this index, always the same one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        cut, start = self._place(index % len(self))
        ids = self.stored.part(cut, start, start + self.length)
        return Item(torch.from_numpy(ids.astype(np.int64)), torch.tensor(int(self.stored.targets[cut])))

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Several windows."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """The record, and the window's first and last base, counted from 1."""
        cut, start = self._place(index)
        record, _, bases = self.stored.id(cut).rpartition(":")
        begin = int(bases.partition("-")[0]) - 1 + start
        return span(record, begin, begin + self.length)

    def _place(self, index: int) -> tuple[int, int]:
        """The number of the cut, and where in it the window starts."""
        cut = int(np.searchsorted(self._firsts, index, "right")) - 1
        slot, slots, starts = index - int(self._firsts[cut]), int(self._slots[cut]), int(self._starts[cut])
        begin, end = slot * starts // slots, (slot + 1) * starts // slots
        return cut, begin + (int(bits(1, self.seed, "train", index)[0]) * (end - begin) >> 64)

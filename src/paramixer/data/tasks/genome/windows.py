"""Windows of very long sequences, such as chromosomes, split by position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.rng import draw_bits
from paramixer.data.samples import Item
from paramixer.data.storage.arrow import StoredSequences

# Window starts per stored piece of a training region, so that no whole chromosome is ever encoded.
_PIECE = 1 << 20
_WITHOUT_N = re.compile("[^N]+")


class Cut(NamedTuple):
    """A part of a sequence that belongs to one split."""

    split: str
    begin: int
    end: int


def split_regions(bases: int, gap: int) -> list[Cut]:
    """Return the region of each split: the first 60 % of the bases, the next 20 % and the last 20 %.

    Validation and test leave out ``gap`` bases at their beginning, so that no window touches one of another split.
    """
    first, second = bases * 6 // 10, bases * 8 // 10
    return [Cut("train", 0, first), Cut("validation", first + gap, second), Cut("test", second + gap, bases)]


def cut_windows(sequence: str, length: int, stride: int) -> Iterator[Cut]:
    """Yield what is stored of a sequence: windows for validation and test, and for training the pieces to draw from.

    No cut has an N in it. Training pieces are at least one window long and overlap so that every window is in exactly
    one of them. The gap between splits is as long as a window.
    """
    starts = stride * max(1, _PIECE // stride)
    for split, begin, end in split_regions(len(sequence), length):
        for run in _WITHOUT_N.finditer(sequence, begin, end):
            step, width = (starts, starts + length - 1) if split == "train" else (length, length)
            for at in range(run.start(), run.end() - length + 1, step):
                yield Cut(split, at, min(at + width, run.end()))


def name_span(record: str, begin: int, end: int) -> str:
    """Return the name of a part of a record: its first and last base, counted from 1."""
    return f"{record}:{begin + 1}-{end}"


class WindowSequences:
    """Training windows that start anywhere in the stored pieces, each at a start given by seed and index.

    The starts of a piece are divided into equal slots of at most ``stride``, and one window starts in each. With a
    stride of the window's length there are as many windows as fit side by side; with a smaller one they overlap.
    """

    def __init__(self, stored: StoredSequences, length: int, stride: int, seed: int) -> None:
        self.stored, self.length, self.stride, self.seed = stored, length, stride, seed
        self._starts = stored.lengths - length + 1
        self._slots = -(-self._starts // stride)
        self._firsts = np.cumsum([0, *self._slots])
        self.targets: NDArray[np.int64] = np.repeat(stored.targets, self._slots)
        """Class of every window."""
        self.lengths = np.full(len(self.targets), length, np.int64)
        """Length of every window; all are the same."""
        self.full_lengths = self.lengths
        """Length before cutting; nothing is cut."""

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Item:
        """Return the window of this index, always the same one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        cut, start = self._locate(index % len(self))
        ids = self.stored.part(cut, start, start + self.length)
        return Item.from_array(ids, self.stored.targets[cut], is_class=True)

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """Return the record, and the window's first and last base, counted from 1."""
        cut, start = self._locate(index)
        record, _, bases = self.stored.id(cut).rpartition(":")
        begin = int(bases.partition("-")[0]) - 1 + start
        return name_span(record, begin, begin + self.length)

    def _locate(self, index: int) -> tuple[int, int]:
        """Return the number of the piece, and the start of the window in it."""
        cut = int(np.searchsorted(self._firsts, index, "right")) - 1
        slot, slots, starts = index - int(self._firsts[cut]), int(self._slots[cut]), int(self._starts[cut])
        begin, end = slot * starts // slots, (slot + 1) * starts // slots
        return cut, begin + (int(draw_bits(1, self.seed, "train", index)[0]) * (end - begin) >> 64)

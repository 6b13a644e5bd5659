"""Which row of a table an n-gram has: a block of rows for every order, counted where all n-grams fit, else hashed.

N-grams are of tokens, or of words: runs of tokens that stand for letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# Row numbers are int32.
_MOST_ROWS = 2**31 - 1
_LONGEST = 64


class NgramBlock(NamedTuple):
    """The rows of one order."""

    order: int
    """n, the tokens or words of an n-gram."""
    start: int
    """The first row."""
    rows: int
    """The number of rows."""
    counted: bool
    """Whether every n-gram has a row of its own; otherwise the row is a hash, which n-grams may share."""
    of_words: bool = False
    """Whether the n-grams are of words. Words have no numbers to count, so that their rows are hashes."""


@dataclass(frozen=True)
class NgramLayout:
    """The blocks of rows of an n-gram table.

    >>> NgramLayout(orders=(1, 2, 3), vocabulary=4, rows=20).blocks[2]
    NgramBlock(order=3, start=20, rows=20, counted=False, of_words=False)
    """

    orders: Sequence[int]
    """The values of n."""
    vocabulary: int
    """The number of different tokens."""
    rows: int
    """The most rows of an order. One with fewer n-grams, ``vocabulary**n <= rows``, has a row for each instead."""
    words: int = 0
    """The longest n-grams of words; 0 for none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(self.orders))
        if not self.orders or len(set(self.orders)) < len(self.orders):
            raise ValueError(f"orders={self.orders}; give at least one, and each only once, such as (2, 3, 4, 5)")
        for order in self.orders:
            if not 1 <= order <= _LONGEST:
                raise ValueError(f"orders={self.orders}: an n-gram has 1 to {_LONGEST} tokens, not {order}")
        if not 0 <= self.words <= _LONGEST:
            raise ValueError(f"words={self.words}; an n-gram has at most {_LONGEST} words, and 0 is for none")
        if self.vocabulary < 1 or self.rows < 1:
            raise ValueError(f"vocabulary={self.vocabulary}, rows={self.rows}; both must be at least 1")
        if self.total > _MOST_ROWS:
            raise ValueError(
                f"rows={self.rows}: orders {self.orders} would take {self.total:,} rows, the limit is {_MOST_ROWS:,}; "
                "choose fewer"
            )

    @cached_property
    def blocks(self) -> tuple[NgramBlock, ...]:
        """One block for every order, in the order of the table: those of tokens, then those of words."""
        blocks: list[NgramBlock] = []
        start = 0
        for order in self.orders:
            counted = self.vocabulary**order <= self.rows
            blocks.append(NgramBlock(order, start, self.vocabulary**order if counted else self.rows, counted))
            start += blocks[-1].rows
        words = (NgramBlock(n + 1, start + n * self.rows, self.rows, False, True) for n in range(self.words))
        return (*blocks, *words)

    @property
    def total(self) -> int:
        """The rows of the table."""
        return self.blocks[-1].start + self.blocks[-1].rows

"""Which positions a factor links.

A chain has M factors; factor m links position i to the K positions ``i + offsets[m, k]`` on a ring. A protocol is a
frozen value that says how these offsets follow from the length.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


class LinkPattern(ABC):
    """How the offsets of a chain follow from its length."""

    @abstractmethod
    def rows(self, length: int) -> list[list[int]]:
        """The offsets as a list of M lists of K whole numbers."""

    def offsets(self, length: int) -> Tensor:
        """The offsets of every factor, int64 ``[factors, links]``, not reduced modulo the length."""
        length = whole_number("length", length)
        if length < 2:
            raise ValueError(f"length {length} leaves nothing to link; a chain needs a length of at least 2")
        rows = self.rows(length)
        for offset in (offset for row in rows for offset in row):
            if not -(2**63) <= offset < 2**63:
                raise ValueError(f"offset {offset} does not fit into 64 bits; ask for fewer links or smaller offsets")
        # On the CPU whatever the default device is: the operators read offsets there.
        return torch.tensor(rows, dtype=torch.int64, device="cpu")

    def reach(self, length: int) -> float:
        """Share of the N x N mixing matrix that the chain can fill: 1.0 where every position reaches every other.

        All rows of a ring look alike, so it is enough to follow position 0 through the factors.
        """
        offsets = self.offsets(length)
        reached = torch.zeros(length, dtype=torch.bool)
        reached[0] = True
        for factor in offsets.tolist():
            reached = torch.stack([reached.roll(offset % length) for offset in factor]).any(0)
        return int(reached.sum()) / length


@dataclass(frozen=True)
class Chord(LinkPattern):
    """Every factor links to distances 0, 1, 2, 4, ... 2^(links-2), as in the CHORD look-up protocol.

    Attributes:
        links: K, links a position; by default ceil(log2 N) + 1, the fewest for which the mixing matrix is full.
        factors: M, factors of the chain; by default ceil(log2 N).
    """

    links: int | None = None
    factors: int | None = None

    def __post_init__(self) -> None:
        _check_counts(self.links, self.factors)

    def rows(self, length: int) -> list[list[int]]:
        """The same row for every factor."""
        links = self.links or log2_ceil(length) + 1
        row = [0, *(2**k for k in range(links - 1))]
        return [row] * (self.factors or log2_ceil(length))


@dataclass(frozen=True)
class Cdil(LinkPattern):
    """Factor m links to (links-1)/2 neighbours on either side, 2^m apart: a circular dilated convolution.

    The order is ``[0, d, 2d, ... hd, -d, -2d, ... -hd]`` with d = 2^m and m from 0. (Counting m from 1, as the paper's
    equation reads literally, makes every distance even and leaves half of the mixing matrix empty on an even ring.)

    Attributes:
        links: K, links a position; odd.
        factors: M, factors of the chain; by default ceil(log2 N).
    """

    links: int = 9
    factors: int | None = None

    def __post_init__(self) -> None:
        whole_number("links", self.links)
        _check_counts(self.links, self.factors)
        if self.links % 2 == 0:
            raise ValueError(
                f"links={self.links} is even; CDIL links a position to itself and to as many on its left as on its "
                f"right: use {self.links - 1} or {self.links + 1}"
            )

    def rows(self, length: int) -> list[list[int]]:
        """One row a factor, with its own dilation."""
        steps = range(1, (self.links - 1) // 2 + 1)
        one_sided = [0, *steps, *(-step for step in steps)]
        return [[2**m * step for step in one_sided] for m in range(self.factors or log2_ceil(length))]


@dataclass(frozen=True)
class Links(LinkPattern):
    """Any table of offsets, one row a factor, the same for every length.

    >>> Links([[0, 1, 5], [0, 2, -7]]).offsets(100).shape
    torch.Size([2, 3])

    Attributes:
        table: M rows of K whole numbers of any sign and size; equal offsets in a row add.
    """

    table: tuple[tuple[int, ...], ...]

    def __init__(self, table: Iterable[Iterable[int]]) -> None:
        try:
            rows = [list(row) for row in (table.tolist() if isinstance(table, Tensor) else table)]
        except TypeError:
            raise ValueError(f"{table!r} is no table of offsets; give rows, such as [[0, 1, 2], [0, 4, 8]]") from None
        if not rows or not rows[0]:
            raise ValueError(f"the table of offsets is empty: {rows}; give at least one row with one link")
        for m, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise ValueError(
                    f"row {m} of the table has {len(row)} links, row 0 has {len(rows[0])}; make them equal"
                )
        whole = (
            tuple(whole_number(f"an offset in row {m} of the table", offset) for offset in row)
            for m, row in enumerate(rows)
        )
        object.__setattr__(self, "table", tuple(whole))

    def rows(self, length: int) -> list[list[int]]:
        """The table as it was written."""
        return [list(row) for row in self.table]


PROTOCOLS: dict[str, type[Chord] | type[Cdil]] = {"chord": Chord, "cdil": Cdil}


def named_pattern(name: str, links: int | None = None, factors: int | None = None) -> LinkPattern:
    """The protocol of this name; links and factors left None take its defaults."""
    if name not in PROTOCOLS:
        raise ValueError(f"there is no protocol {name!r}; choose from {', '.join(PROTOCOLS)} or give a Links table")
    given = {"links": links, "factors": factors}
    return PROTOCOLS[name](**{key: count for key, count in given.items() if count is not None})


def log2_ceil(length: int) -> int:
    """ceil(log2(length)) in whole numbers, at least 1."""
    return max((length - 1).bit_length(), 1)


def whole_number(name: str, value: object) -> int:
    """The value as an int, be it Python's, numpy's or a tensor's; anything else is named."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ValueError(f"{name} is {value!r}, not a whole number")


def _check_counts(links: int | None, factors: int | None) -> None:
    for name, count in (("links", links), ("factors", factors)):
        if count is not None and whole_number(name, count) < 1:
            raise ValueError(f"{name}={count}; a factor needs at least one link and a chain at least one factor")

"""The link patterns: which positions a factor links.

A chain has M factors; factor m links position i to the K positions ``i + offsets[m, k]`` on a ring. A link pattern (the
paper's protocol) is a frozen value that computes these offsets from the length.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


class LinkPattern(ABC):
    """Computes the offsets of a chain from its length."""

    @abstractmethod
    def rows(self, length: int) -> list[list[int]]:
        """Return the offsets as a list of M lists of K whole numbers."""

    def offsets(self, length: int) -> Tensor:
        """Return the offsets of every factor, int64 ``[factors, links]``, not reduced modulo the length."""
        length = whole_number("length", length)
        if length < 2:
            raise ValueError(f"length {length} leaves nothing to link; a chain needs a length of at least 2")
        rows = self.rows(length)
        for offset in (offset for row in rows for offset in row):
            if not -(2**63) <= offset < 2**63:
                raise ValueError(f"offset {offset} does not fit into 64 bits; ask for fewer links or smaller offsets")
        # On the CPU even if the default device is another: the operators read offsets there.
        return torch.tensor(rows, dtype=torch.int64, device="cpu")

    def reach(self, length: int) -> float:
        """Return the fraction of the N x N mixing matrix that the chain can fill; 1.0 if it is full.

        All rows of a ring have the same structure, so it is enough to follow position 0 through the factors.
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
        links: K, links per position; by default ceil(log2 N) + 1, the fewest for which the mixing matrix is full.
        factors: M, factors per chain; by default ceil(log2 N).
    """

    links: int | None = None
    factors: int | None = None

    def __post_init__(self) -> None:
        _check_counts(self.links, self.factors)

    def rows(self, length: int) -> list[list[int]]:
        """Return the same row for every factor."""
        links = self.links or log2_ceil(length) + 1
        row = [0, *(2**k for k in range(links - 1))]
        return [row] * (self.factors or log2_ceil(length))


@dataclass(frozen=True)
class Cdil(LinkPattern):
    """Factor m links to (links-1)/2 neighbors on either side, base^m apart: a circular dilated convolution.

    The order is ``[0, d, 2d, ... hd, -d, -2d, ... -hd]`` with d = base^m and m from 0. (Counting m from 1, as the
    paper's equation reads literally, makes every distance even and leaves half of the mixing matrix empty on an even
    ring.) The paper's base is 2. With a larger one, fewer factors reach every position.

    Attributes:
        links: K, links per position; odd.
        factors: M, factors per chain; by default ceil(log2 N) with base 2, else as many as reach every position.
        base: the dilation grows by it from factor to factor; 2 to links, beyond which positions are left out.
    """

    links: int = 9
    factors: int | None = None
    base: int = 2

    def __post_init__(self) -> None:
        whole_number("links", self.links)
        _check_counts(self.links, self.factors)
        if self.links % 2 == 0:
            raise ValueError(
                f"links={self.links} is even; CDIL links a position to itself and to as many on its left as on its "
                f"right: use {self.links - 1} or {self.links + 1}"
            )
        if whole_number("base", self.base) != 2 and not 2 < self.base <= self.links:
            raise ValueError(
                f"base={self.base} with links={self.links}; dilations that grow by more than the links leave positions "
                f"out of reach: use 2 to {max(2, self.links)}"
            )

    def rows(self, length: int) -> list[list[int]]:
        """Return one row per factor, each with its own dilation."""
        steps = range(1, (self.links - 1) // 2 + 1)
        both_sides = [0, *steps, *(-step for step in steps)]
        factors = self.factors or (log2_ceil(length) if self.base == 2 else self._enough(length))
        return [[self.base**m * step for step in both_sides] for m in range(factors)]

    def _enough(self, length: int) -> int:
        """Return how many factors reach from one end of the sequence to the other."""
        factors, reach = 0, 0
        while factors == 0 or reach < length - 1:
            reach += (self.links - 1) // 2 * self.base**factors
            factors += 1
        return factors


@dataclass(frozen=True)
class Links(LinkPattern):
    """Any table of offsets, one row per factor, the same for every length.

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
        """Return the table as given."""
        return [list(row) for row in self.table]


PROTOCOLS: dict[str, type[Chord] | type[Cdil]] = {"chord": Chord, "cdil": Cdil}


def named_pattern(
    name: str, links: int | None = None, factors: int | None = None, base: int | None = None
) -> LinkPattern:
    """Return the link pattern of this name; links, factors and base left None take its defaults."""
    if name not in PROTOCOLS:
        raise ValueError(f"there is no protocol {name!r}; choose from {', '.join(PROTOCOLS)} or give a Links table")
    given = {"links": links, "factors": factors}
    if base is not None:
        if name != "cdil":
            raise ValueError(f"base={base} is for cdil, whose dilations grow by it; leave it out with {name}")
        given["base"] = base
    return PROTOCOLS[name](**{key: count for key, count in given.items() if count is not None})


def choose_base(name: str, links: int | None, base: int | None = None) -> int | None:
    """Return the base of a layer's dilations: as given, or 8 for CDIL of at least 8 links; None for the pattern's own.

    With 8 and the usual 9 links, three factors reach every position of 500.
    """
    return 8 if base is None and name == "cdil" and (links or 9) >= 8 else base


def log2_ceil(length: int) -> int:
    """Return ceil(log2(length)), at least 1, in integer arithmetic."""
    return max((length - 1).bit_length(), 1)


def whole_number(name: str, value: object) -> int:
    """Return the value as an int, be it Python's, numpy's or a tensor's; raise if it is anything else."""
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

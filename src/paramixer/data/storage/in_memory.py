"""Sequences in memory, as a split of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.samples import Item


class MemorySequences:
    """Token ids ``[length]`` or numbers ``[length, features]``, each with its class or value.

    Args:
        sequences: one array each.
        targets: integers for classes, floats for values.
        weights: how much each sequence counts in training; None for all alike.
    """

    def __init__(
        self, sequences: Sequence[NDArray[Any]], targets: NDArray[Any], weights: NDArray[Any] | None = None
    ) -> None:
        if weights is not None and np.shape(weights) != (len(sequences),):
            raise ValueError(
                f"weights of shape {list(np.shape(weights))} for {len(sequences)} sequences; give one each"
            )
        self._sequences = list(sequences)
        self.targets = targets
        self.weights = None if weights is None else np.asarray(weights, np.float64)
        self.lengths = np.array([len(sequence) for sequence in sequences], np.int64)
        self.full_lengths = self.lengths

    def __len__(self) -> int:
        return len(self._sequences)

    def __getitem__(self, index: int) -> Item:
        """Return one sequence and its target."""
        return Item.from_array(self._sequences[index], self.targets[index], self.targets.dtype.kind in "iu")

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """Return the index as text."""
        return str(index)

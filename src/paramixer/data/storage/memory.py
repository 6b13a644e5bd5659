"""Sequences in memory, as a split of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from paramixer.data.samples import Item


class MemorySequences(Dataset[Item]):
    """Token ids ``[length]`` or numbers ``[length, features]``, each with its class or value."""

    def __init__(self, sequences: Sequence[NDArray[Any]], targets: NDArray[Any]) -> None:
        self._sequences = list(sequences)
        self.targets = targets
        self.lengths = np.array([len(sequence) for sequence in sequences], np.int64)
        self.full_lengths = self.lengths

    def __len__(self) -> int:
        return len(self._sequences)

    def __getitem__(self, index: int) -> Item:
        """Return one sequence and its target."""
        sequence, target = self._sequences[index], self.targets[index]
        inputs = torch.from_numpy(sequence.astype(np.int64 if sequence.ndim == 1 else np.float32))
        kind = torch.int64 if self.targets.dtype.kind in "iu" else torch.float32
        return Item(inputs, torch.tensor(target, dtype=kind))

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """Return the index as text."""
        return str(index)

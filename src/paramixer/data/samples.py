"""A sequence in its three forms: as a source has it, as it is stored, and as a model takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


class Sample(NamedTuple):
    """One sequence as a reader yields it."""

    sequence: str | NDArray[Any]
    """Text, numbers ``[length, features]``, or token ids ``[length]`` of a vocabulary of numbers."""
    target: str | float
    """The label as it is written, or a number."""
    place: str
    """File and line or row, for messages."""
    split: str | None = None
    """train, validation or test, if the source says so."""
    id: str = ""
    """The source's name for the sequence."""
    weight: float | None = None
    """How much the sequence counts in training, if the source says so."""


class Row(NamedTuple):
    """One sequence on its way into storage."""

    sequence: NDArray[Any]
    """Token ids ``[length]`` or numbers ``[length, features]``, already cut."""
    target: float
    """The number of the class, or the value."""
    full: int
    """Length of the sequence before it was cut."""
    id: str = ""
    """The source's name for the sequence."""
    weight: float | None = None
    """How much the sequence counts in training; of all rows or of none."""


class Item(NamedTuple):
    """One sequence as a model takes it."""

    inputs: Tensor
    """int64 ``[length]`` or float32 ``[length, features]``."""
    target: Tensor
    """int64 class or float32 value, a scalar."""

    @classmethod
    def from_array(cls, sequence: NDArray[Any], target: float, is_class: bool) -> Item:
        """Return the item of token ids ``[length]`` or numbers ``[length, features]``, which are copied."""
        # Processes that only prepare data never need torch, which takes seconds to import.
        import torch

        inputs = torch.from_numpy(sequence.astype(np.int64 if sequence.ndim == 1 else np.float32))
        return cls(inputs, torch.tensor(int(target)) if is_class else torch.tensor(float(target)))

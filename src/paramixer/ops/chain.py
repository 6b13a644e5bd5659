"""The arguments of a chain of factors as the backends get them: checked, and in float32 or float64."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """The arguments of :func:`paramixer.paramix`, which documents them."""

    inputs: Tensor
    values: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor
    offsets: Tensor
    lengths: Tensor | None
    residual: str
    ring: bool
    row_ids: Tensor | None = None

    @property
    def factors(self) -> int:
        """M, the number of factors."""
        return self.w1.shape[0]

    def widen(self) -> Chain:
        """Return the chain with half precision converted to float32."""
        inputs, values, w1, b1, w2, b2 = (widen(tensor) for tensor in self[:6])
        return self._replace(inputs=inputs, values=values, w1=w1, b1=b1, w2=w2, b2=b2)


def widen(tensor: Tensor) -> Tensor:
    """Return the tensor in the dtype in which backends compute: half precision becomes float32."""
    return tensor.to(compute_dtype(tensor.dtype))


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which backends compute for tensors of this dtype."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def count_checkpoints(factors: int, checkpoint_every: int) -> int:
    """Return how many factor inputs a forward pass stores besides the values, which are the input of factor 0."""
    return (factors - 1) // checkpoint_every if checkpoint_every else 0

"""What a chain of factors is made of, as the engines get it: checked, and in float32 or float64."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """The arguments of ``paramix``; see there for their meaning."""

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
    symbols: Tensor | None = None

    @property
    def factors(self) -> int:
        """M, the number of factors."""
        return self.w1.shape[0]

    def widened(self) -> Chain:
        """The same chain with half precision turned into float32."""
        inputs, values, w1, b1, w2, b2 = (widen(tensor) for tensor in self[:6])
        return self._replace(inputs=inputs, values=values, w1=w1, b1=b1, w2=w2, b2=b2)


def widen(tensor: Tensor) -> Tensor:
    """Half precision is computed in float32."""
    return tensor.to(computing(tensor.dtype))


def computing(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which engines compute for tensors of this one."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def kept_factors(factors: int, keep: int) -> int:
    """How many factors' inputs a forward pass keeps beside the values themselves, which are factor 0's."""
    return (factors - 1) // keep if keep else 0

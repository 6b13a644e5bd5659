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
        return self.w1.shape[-3]

    @property
    def heads(self) -> int | None:
        """How many heads the parameters have; None without an axis of heads."""
        return count_heads(self.w1)

    @property
    def shares_inputs(self) -> bool:
        """Whether every head reads all inputs, instead of a slice of its own."""
        return self.inputs.shape[-1] == self.w1.shape[-2]

    def split_heads(self) -> list[Chain]:
        """Return each head as a chain without an axis of heads; their results side by side are the whole chain's."""
        heads = self.w1.shape[0]
        inputs = [self.inputs] * heads if self.shares_inputs else self.inputs.chunk(heads, -1)
        parameters = zip(self.w1, self.b1, self.w2, self.b2, self.offsets, strict=True)
        return [
            Chain(x, value, *tensors, self.lengths, self.residual, self.ring, self.row_ids)
            for x, value, tensors in zip(inputs, self.values.chunk(heads, 2), parameters, strict=True)
        ]

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


def count_heads(w1: Tensor) -> int | None:
    """Return the number of heads of w1 ``[heads, factors, inputs, hidden]``; None for ``[factors, inputs, hidden]``."""
    return w1.shape[0] if w1.dim() == 4 else None


def count_checkpoints(factors: int, checkpoint_every: int) -> int:
    """Return how many factor inputs a forward pass stores besides the values, which are the input of factor 0."""
    return (factors - 1) // checkpoint_every if checkpoint_every else 0


def checkpoint_shape(values: Tensor, w1: Tensor, checkpoint_every: int) -> tuple[int, ...]:
    """Return the shape of the stored factor inputs: ``[count, batch, length, channels]``.

    With heads it is ``[count, batch, heads, length, channels of a head]``, so that the rows of a head are contiguous.
    """
    count, heads = count_checkpoints(w1.shape[-3], checkpoint_every), count_heads(w1)
    batch, length, channels = values.shape
    return (count, batch, length, channels) if heads is None else (count, batch, heads, length, channels // heads)

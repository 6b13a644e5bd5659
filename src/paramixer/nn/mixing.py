"""The mixing matrix A of a chain, known by its products with vectors: rows and columns without N x N entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.ops import paramix
from paramixer.ops.chain import checkpoint_shape, compute_dtype, count_heads
from paramixer.ops.checks import as_int64
from paramixer.ops.functional import build_chain
from paramixer.ops.torch_ops import paramix_backward_op

# A vector takes as much memory as one channel of the values; so many are multiplied at a time.
_VECTORS_AT_ONCE = 16


class MixingMatrix(NamedTuple):
    """A = the product of a chain's factors with their residuals, from the arguments of :func:`paramixer.paramix`.

    Vectors have shape ``[batch, length, count]``. With heads there is a matrix for each head, and vectors have an axis
    of heads: ``[batch, heads, length, count]``.
    """

    inputs: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor
    offsets: Tensor
    residual: str = "factor"
    lengths: Tensor | Sequence[int] | None = None
    ring: bool = True

    def rows(self, positions: Tensor | Sequence[int]) -> Tensor:
        """Return rows of A, ``[batch, positions, length]`` or ``[batch, heads, positions, length]``, without a graph.

        A row takes time and memory proportional to the stored entries. It is the transposed chain applied to a unit
        vector, which is what the backward pass does to a gradient.
        """
        return self.multiply_transposed(self._unit_vectors("mixing_rows", positions)).mT

    @torch.no_grad()
    def columns(self, positions: Tensor | Sequence[int]) -> Tensor:
        """Return columns of A, in the shape of :meth:`rows`: the weight of these positions in all results."""
        return self._in_parts(self.multiply, self._unit_vectors("mixing_columns", positions)).mT

    def dense(self, checkpoint_every: int = 1) -> Tensor:
        """Return A itself, ``[batch, length, length]`` or ``[batch, heads, length, length]``."""
        return self.multiply(self._unit_vectors("mixing_matrix", range(self.inputs.shape[1])), checkpoint_every)

    def multiply(self, vectors: Tensor, checkpoint_every: int = 1) -> Tensor:
        """Return A times vectors; gradients reach the chain's arguments and the vectors."""
        return self._split_heads(paramix(self.inputs, self._join_heads(vectors), *self[1:], checkpoint_every))

    @torch.no_grad()
    def multiply_transposed(self, vectors: Tensor) -> Tensor:
        """Return A transposed times vectors, without a graph."""
        return self._in_parts(self._multiply_transposed, vectors)

    def _multiply_transposed(self, vectors: Tensor) -> Tensor:
        values = self._join_heads(vectors)
        chain = build_chain("multiply_transposed", self.inputs, values, *self[1:])
        # The chain is linear in the values, so the gradient of the values does not depend on them: any will do.
        shape = checkpoint_shape(chain.values, chain.w1, chain.factors)
        no_checkpoints = chain.values.new_empty(shape, dtype=compute_dtype(chain.values.dtype))
        _, product, *_ = paramix_backward_op(chain.values, *chain, chain.factors, no_checkpoints)
        return self._split_heads(product)

    def _in_parts(self, product: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
        if not vectors.shape[-1]:
            return vectors
        return torch.cat([product(part) for part in torch.split(vectors, _VECTORS_AT_ONCE, -1)], -1)

    def _join_heads(self, vectors: Tensor) -> Tensor:
        """Return the values whose slices are the heads' vectors."""
        return vectors if count_heads(self.w1) is None else vectors.transpose(1, 2).flatten(2)

    def _split_heads(self, values: Tensor) -> Tensor:
        heads = count_heads(self.w1)
        return values if heads is None else torch.stack(values.chunk(heads, 2), 1)

    def _unit_vectors(self, what: str, positions: Tensor | Sequence[int]) -> Tensor:
        batch, length, _ = self.inputs.shape
        indices = as_int64(what, "positions", positions).to(self.inputs.device)
        if indices.dim() != 1:
            raise ValueError(f"positions have shape {list(indices.shape)}, expected a list of whole numbers")
        outside = indices[(indices < 0) | (indices >= length)]
        if len(outside):
            raise ValueError(f"position {int(outside[0])} is outside the sequence, 0 to {length - 1}")
        heads = count_heads(self.w1)
        leading = (batch,) if heads is None else (batch, heads)
        return F.one_hot(indices, length).to(self.inputs.dtype).T.expand(*leading, length, len(indices))

"""The Sparse Transformer in both its patterns, by reshaping into blocks: O(N sqrt N), no N x N mask.

A block of ``stride`` positions, about sqrt N of them. Each pattern is two attentions in succession, so that after both
every position has reached every other:

- strided: positions less than a stride away; then positions a multiple of the stride away.
- fixed: positions of the same block; then the first few positions of every block. (The paper takes the last few,
  where a causal model has seen the block. In both directions the first few do as well, and every block has them.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import Heads, Layer, pad_to_multiple

SUMMARIES = 8


def choose_stride(config: BaselineConfig) -> int:
    """Return the number of positions in a block: ``window``, or about sqrt N."""
    return config.window or max(1, round(math.sqrt(config.length)))


class _Blocked(Heads, ABC):
    """Attention on queries, keys and values cut into blocks; a subclass defines the pattern."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__(config)
        self.stride = choose_stride(config)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        length = inputs.shape[1]
        longer, valid = pad_to_multiple(inputs, valid, self.stride)
        # [batch, heads, blocks, stride, channels / heads]
        query, key, value = (torch.unflatten(part, 2, (-1, self.stride)) for part in self.split(longer))
        blocks = None if valid is None else torch.unflatten(valid, 1, (-1, self.stride))[:, None]
        return self.merge(self.attend(query, key, value, blocks).flatten(2, 3)[:, :, :length])

    @abstractmethod
    def attend(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values in blocks; ``valid`` is ``[batch, 1, blocks, stride]``."""


class Near(_Blocked):
    """Strided, first step: |i - j| < stride, which lies in three blocks."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None) -> Tensor:
        """Attend to the same block and its neighbors, masked by distance."""
        stride, blocks = self.stride, query.shape[2]
        places = torch.arange(stride, device=query.device)
        distance = places[:, None] + stride - torch.arange(3 * stride, device=query.device)
        allowed = distance.abs() < stride
        exists = query.new_ones(1, 1, blocks, stride, dtype=bool) if valid is None else valid  # type: ignore[call-overload]
        allowed = allowed & _with_neighbors(exists[..., None]).squeeze(-1)[..., None, :]
        return _softmax_attention(query, _with_neighbors(key), _with_neighbors(value), allowed)


class Strided(_Blocked):
    """Strided, second step: (i - j) is a multiple of the stride, a column of the blocks."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None) -> Tensor:
        """Attend within the columns of the blocks."""
        query, key, value = (part.transpose(2, 3) for part in (query, key, value))
        allowed = None if valid is None else valid.transpose(2, 3)[..., None, :]
        return _softmax_attention(query, key, value, allowed).transpose(2, 3)


class Inside(_Blocked):
    """Fixed, first step: positions of the same block."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None) -> Tensor:
        """Attend within each block."""
        return _softmax_attention(query, key, value, None if valid is None else valid[..., None, :])


class Summaries(_Blocked):
    """Fixed, second step: the first few positions of every block."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None) -> Tensor:
        """Attend to the same keys from every position."""
        few = min(SUMMARIES, self.stride)
        blocks = query.shape[2]
        keys, values = (part[..., :few, :].flatten(2, 3) for part in (key, value))
        allowed = None if valid is None else valid[..., :few].flatten(2, 3)[..., None, :]
        return torch.unflatten(_softmax_attention(query.flatten(2, 3), keys, values, allowed), 2, (blocks, -1))


def strided(config: BaselineConfig) -> nn.Module:
    """Return one layer of the strided pattern."""
    return Layer(config, Near(config), Strided(config))


def fixed(config: BaselineConfig) -> nn.Module:
    """Return one layer of the fixed pattern."""
    return Layer(config, Inside(config), Summaries(config))


def _with_neighbors(blocks: Tensor) -> Tensor:
    """Return every block with its neighbors, ``[batch, heads, blocks, 3 * stride, ...]``; zeros beyond the ends."""
    padded = F.pad(blocks, (0, 0, 0, 0, 1, 1))
    return torch.cat([padded[:, :, :-2], padded[:, :, 1:-1], padded[:, :, 2:]], 3)


def _softmax_attention(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor:
    if allowed is not None:
        # Rows without any allowed key would be NaN; they are not read.
        allowed = allowed | ~allowed.any(-1, keepdim=True)
    return F.scaled_dot_product_attention(query, key, value, allowed)

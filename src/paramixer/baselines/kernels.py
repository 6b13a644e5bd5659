"""Attention by feature maps: a softmax replaced by a product of features, so that no pair of positions is formed."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import Heads

CHUNK = 64


class LinearTransformer(Heads):
    """Attention with the features elu(x) + 1."""

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        query, key, value = self.split(inputs)
        query, key = F.elu(query) + 1, F.elu(key) + 1
        if valid is not None:
            key = key * valid[:, None, :, None]
        weights = torch.einsum("bhnd,bhd->bhn", query, key.sum(2)).clamp(min=1e-6)
        mixed = torch.einsum("bhnd,bhde->bhne", query, torch.einsum("bhnd,bhne->bhde", key, value))
        return self.merge(mixed / weights[..., None])


class RandomFeatureAttention(Heads):
    """RFA-Gaussian: sines and cosines of random projections of unit queries and keys, with a gate at every position.

    The gate g of a position discounts all positions before it, S = g S + (1 - g) features x value, in the paper from
    left to right. Here the same runs from right to left too, and both are added.
    """

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__(config)
        each = config.channels // self.heads
        features = config.rank or 64
        self.register_buffer("directions", torch.randn(self.heads, each, features))
        self.directions: Tensor
        self.spread = nn.Parameter(torch.ones(self.heads, 1, each))
        self.to_gates = nn.Linear(config.channels, 2 * self.heads)
        # A gate discounts by 1 / N at first, or distant positions would not count.
        nn.init.constant_(self.to_gates.bias, math.log(config.length))

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        query, key, value = self.split(inputs)
        query, key = (self.compute_features(part) for part in (query, key))
        # [2, batch, heads, length]
        logits = torch.unflatten(self.to_gates(inputs).float(), -1, (2, self.heads)).permute(2, 0, 3, 1)
        forget, take = F.logsigmoid(logits), torch.sigmoid(-logits)
        if valid is not None:
            take = take * valid[:, None]
        ones = torch.ones_like(value[..., :1])
        value = torch.cat([value, ones], -1).float()
        mixed = gated_sums(query, key, value * take[0, ..., None], forget[0])
        other = gated_sums(query.flip(2), key.flip(2), (value * take[1, ..., None]).flip(2), forget[1].flip(2)).flip(2)
        total = mixed + other
        # Sines may cancel; as in the paper, the denominator is kept away from zero.
        weights = total[..., -1:]
        weights = torch.where(weights < 0, -1.0, 1.0) * weights.abs().clamp(min=1e-3)
        return self.merge((total[..., :-1] / weights).to(inputs.dtype))

    def compute_features(self, part: Tensor) -> Tensor:
        """Return sines and cosines of random projections of unit vectors, ``[..., 2 * features]``."""
        angles = (F.normalize(part.float(), dim=-1) * self.spread) @ self.directions
        return torch.cat([angles.sin(), angles.cos()], -1) / math.sqrt(angles.shape[-1])


def gated_sums(query: Tensor, key: Tensor, value: Tensor, forget: Tensor) -> Tensor:
    """Return sums over the past with a discount, computed in chunks.

    ``out[i] = query[i] . sum over j <= i of exp(forget[j + 1] + .. + forget[i]) key[j] x value[j]``

    Args:
        query: ``[..., length, features]``.
        key: ``[..., length, features]``.
        value: ``[..., length, width]``.
        forget: ``[..., length]``, logarithms of the factor by which each position discounts the past.
    """
    state = query.new_zeros(*query.shape[:-2], query.shape[-1], value.shape[-1])
    outputs = []
    # Split, not sliced: the gradient of a slice is as long as the whole.
    parts = [torch.split(part, CHUNK, -2) for part in (query, key, value, forget[..., None])]
    for chunk_query, chunk_key, chunk_value, chunk_forget in zip(*parts, strict=True):
        decay = chunk_forget.squeeze(-1).cumsum(-1)
        between = (decay[..., :, None] - decay[..., None, :]).tril().exp().tril()
        inside = (chunk_query @ chunk_key.transpose(-1, -2) * between) @ chunk_value
        outputs.append(inside + (chunk_query * decay.exp()[..., None]) @ state)
        left = (decay[..., -1:] - decay).exp()[..., None]
        state = state * decay[..., -1, None, None].exp() + (chunk_key * left).transpose(-1, -2) @ chunk_value
    return torch.cat(outputs, -2)

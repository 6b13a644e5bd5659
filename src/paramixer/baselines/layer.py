"""The layer that most baselines share: norm, attention, residual; norm, feed-forward, residual."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.ops.checks import past_end
from paramixer.ops.dropout import Dropout


class Attention(Protocol):
    """A module that mixes positions."""

    def __call__(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values ``[batch, length, channels]``.

        Args:
            inputs: the same shape; zero at positions that do not count.
            valid: ``[batch, length]``, True where a position counts; None if all do.
        """


class Layer(nn.Module):
    """A complete layer. Positions past a sequence's length are zero before every attention and after the layer.

    Args:
        config: of the model; ``hidden`` is the width of the feed-forward part.
        attention: the modules that mix positions, one after the other.
        feed_forward: whether there is a feed-forward part.
    """

    def __init__(self, config: BaselineConfig, *attention: nn.Module, feed_forward: bool = True) -> None:
        super().__init__()
        channels = config.channels
        self.attention = nn.ModuleList(attention)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in attention)
        self.dropout = Dropout(config.block_dropout)
        self.feed_forward = None
        if feed_forward:
            self.feed_forward = nn.Sequential(
                nn.LayerNorm(channels),
                nn.Linear(channels, config.hidden),
                nn.GELU(),
                nn.Linear(config.hidden, channels),
            )

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return mixed values ``[batch, length, channels]``; lengths ``[batch]`` say how many positions count."""
        valid = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = zero_invalid(values, valid)
        for norm, attention in zip(self.norms, self.attention, strict=True):
            values = values + self.dropout(attention(zero_invalid(norm(values), valid), valid))
        if self.feed_forward is not None:
            values = values + self.dropout(self.feed_forward(values))
        return zero_invalid(values, valid)


class Heads(nn.Module):
    """Projections to the queries, keys and values of several heads, and back, for attention implemented here."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.heads = check_heads(config)
        self.to_qkv = nn.Linear(config.channels, 3 * config.channels, bias=False)
        self.to_out = nn.Linear(config.channels, config.channels)

    def split(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each ``[batch, heads, length, channels / heads]``."""
        query, key, value = torch.unflatten(self.to_qkv(inputs), -1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return query, key, value

    def merge(self, mixed: Tensor) -> Tensor:
        """Return the heads' results side by side and projected, ``[batch, length, channels]``."""
        out: Tensor = self.to_out(mixed.transpose(1, 2).flatten(2))
        return out


def check_heads(config: BaselineConfig) -> int:
    """Return the number of heads, or raise an error if the channels cannot be divided among them."""
    if config.channels % config.heads:
        raise ValueError(f"channels={config.channels} cannot be divided among heads={config.heads}; choose a divisor")
    return config.heads


def pad_to_multiple(
    inputs: Tensor, valid: Tensor | None, multiple: int, least: int = 0
) -> tuple[Tensor, Tensor | None]:
    """Return inputs padded with zeros to a multiple, at least ``least`` long, and a mask that excludes the padding."""
    length = inputs.shape[1]
    missing = -(-max(length, least) // multiple) * multiple - length
    if not missing:
        return inputs, valid
    if valid is None:
        valid = inputs.new_ones(inputs.shape[:2], dtype=bool)  # type: ignore[call-overload]
    return F.pad(inputs, (0, 0, 0, missing)), F.pad(valid, (0, missing))


def zero_invalid(values: Tensor, valid: Tensor | None) -> Tensor:
    """Return values with zeros at positions that do not count."""
    # Not a product: values past the end may be NaN.
    return values if valid is None else values.masked_fill(~valid[..., None], 0)

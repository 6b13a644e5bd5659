"""What most rivals share: norm, attention, residual; norm, feed-forward, residual."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.nn.config import ParamixerConfig
from paramixer.ops.checks import past_end
from paramixer.ops.dropout import Dropout


class Attention(Protocol):
    """Anything that mixes positions."""

    def __call__(self, inputs: Tensor, there: Tensor | None) -> Tensor:
        """Mixed values ``[batch, length, channels]``.

        Args:
            inputs: the same shape; zero at positions that do not count.
            there: ``[batch, length]``, True where a position counts; None if all do.
        """


class Layer(nn.Module):
    """A rival's full layer. Positions past a sequence's length are zero before every attention and after the layer.

    Args:
        config: of the model; ``hidden`` is the feed-forward width, and without one there is no feed-forward.
        attention: the rival itself.
        feed_forward: whether there is one.
    """

    def __init__(self, config: ParamixerConfig, *attention: nn.Module, feed_forward: bool = True) -> None:
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

    def forward(self, values: Tensor, inputs: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
        """The same signature as a Paramixer block's; a rival has no use for ``inputs``."""
        there = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = kept(values, there)
        for norm, attention in zip(self.norms, self.attention, strict=True):
            values = values + self.dropout(attention(kept(norm(values), there), there))
        if self.feed_forward is not None:
            values = values + self.dropout(self.feed_forward(values))
        return kept(values, there)


class Heads(nn.Module):
    """Queries, keys and values in several heads, and the way back, for attention that is written here."""

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        self.heads = whole_heads(config)
        self.to_qkv = nn.Linear(config.channels, 3 * config.channels, bias=False)
        self.to_out = nn.Linear(config.channels, config.channels)

    def split(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Three tensors ``[batch, heads, length, channels / heads]``."""
        query, key, value = torch.unflatten(self.to_qkv(inputs), -1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return query, key, value

    def merge(self, mixed: Tensor) -> Tensor:
        """``[batch, length, channels]``."""
        out: Tensor = self.to_out(mixed.transpose(1, 2).flatten(2))
        return out


def whole_heads(config: ParamixerConfig) -> int:
    """The number of heads, if the channels can be shared among them."""
    if config.channels % config.heads:
        raise ValueError(f"channels={config.channels} cannot be shared by heads={config.heads}; choose a divisor")
    return config.heads


def padded_to(inputs: Tensor, there: Tensor | None, multiple: int, least: int = 0) -> tuple[Tensor, Tensor | None]:
    """Inputs with zeros behind, up to a multiple and at least so long, and a mask that knows of them."""
    length = inputs.shape[1]
    missing = -(-max(length, least) // multiple) * multiple - length
    if not missing:
        return inputs, there
    if there is None:
        there = inputs.new_ones(inputs.shape[:2], dtype=bool)  # type: ignore[call-overload]
    return F.pad(inputs, (0, 0, 0, missing)), F.pad(there, (0, missing))


def kept(values: Tensor, there: Tensor | None) -> Tensor:
    """Zero where a position does not count."""
    # Not a product: what lies past the end may be anything.
    return values if there is None else values.masked_fill(~there[..., None], 0)

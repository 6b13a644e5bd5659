"""Later work of the same authors, on the same ring: ChordMixer and CDIL-CNN, written from their papers.

A block of either is as many layers as it takes for every position to reach every other.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from paramixer.baselines.layer import kept
from paramixer.links import log2_ceil
from paramixer.nn.config import ParamixerConfig
from paramixer.ops.checks import past_end
from paramixer.ops.dropout import Dropout


class ChordMixer(nn.Module):
    """Each layer runs an MLP on every position, turns the tracks of its output round the ring, and adds its input.

    The channels are cut into ceil(log2 N) + 1 tracks (fewer where there are not so many channels); the first stays, the
    others turn by 1, 2, 4, ... positions.
    """

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        layers = max(1, log2_ceil(config.length))
        tracks = min(layers + 1, config.channels)
        self.sizes = [len(part) for part in torch.arange(config.channels).tensor_split(tracks)]
        # Where channels are fewer than tracks should be, layers take turns at the turns.
        turns = [2**power for power in range(layers)]
        self.turns = [
            [0, *(turns[(layer * (tracks - 1) + track) % layers] for track in range(tracks - 1))]
            if tracks <= layers
            else [0, *turns]
            for layer in range(layers)
        ]
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(config.channels, config.hidden), nn.GELU(), nn.Linear(config.hidden, config.channels)
            )
            for _ in range(layers)
        )
        self.dropout = Dropout(config.block_dropout)

    def forward(self, values: Tensor, inputs: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
        """See :class:`~.layer.Layer`."""
        there = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = kept(values, there)
        for layer, turns in zip(self.layers, self.turns, strict=True):
            tracks = torch.split(kept(self.dropout(layer(values)), there), self.sizes, -1)
            turned = [turned_by(track, turn, lengths) for track, turn in zip(tracks, turns, strict=True)]
            values = values + torch.cat(turned, -1)
        return values


class CdilCnn(nn.Module):
    """Convolutions of three positions on the ring, dilated by 1, 2, 4, ..., each with a ReLU and a residual."""

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        # A chain of L layers reaches 2^(L + 1) - 1 positions.
        layers = max(1, log2_ceil(config.length + 1) - 1)
        widths = [config.channels, *[config.hidden] * (layers - 1), config.channels]
        pairs = list(pairwise(widths))
        self.convolutions = nn.ModuleList(nn.Linear(3 * inside, out) for inside, out in pairs)
        self.residuals = nn.ModuleList(
            nn.Identity() if inside == out else nn.Linear(inside, out, bias=False) for inside, out in pairs
        )
        self.dropout = Dropout(config.block_dropout)

    def forward(self, values: Tensor, inputs: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
        """See :class:`~.layer.Layer`."""
        there = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = kept(values, there)
        for number, (convolution, residual) in enumerate(zip(self.convolutions, self.residuals, strict=True)):
            near = [turned_by(values, turn, lengths) for turn in (-(2**number), 0, 2**number)]
            values = kept(convolution(torch.cat(near, -1)).relu() + residual(values), there)
        mixed: Tensor = self.dropout(values)
        return mixed


def turned_by(values: Tensor, turn: int, lengths: Tensor | None) -> Tensor:
    """``out[b, i] = values[b, (i + turn) % length]``, each sequence on a ring of its own length."""
    if turn == 0:
        return values
    if lengths is None:
        return values.roll(-turn, 1)
    places = torch.arange(values.shape[1], device=values.device)
    rings = lengths.clamp(min=1)[:, None]
    there = torch.where(places < rings, (places + turn) % rings, places)
    return values.gather(1, there[..., None].expand_as(values))

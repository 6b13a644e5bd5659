"""ChordMixer and CDIL-CNN, later work of the same authors on the same ring, implemented from their papers.

A block of either is as many layers as it takes for every position to reach every other.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import zero_invalid
from paramixer.links import log2_ceil
from paramixer.ops.checks import past_end
from paramixer.ops.dropout import Dropout


class ChordMixer(nn.Module):
    """Each layer applies an MLP to every position, rotates the tracks of its output around the ring and adds its input.

    The channels are cut into ceil(log2 N) + 1 tracks (fewer if there are not so many channels); the first
    stays, the others are rotated by 1, 2, 4, ... positions.
    """

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        layers = max(1, log2_ceil(config.length))
        tracks = min(layers + 1, config.channels)
        self.sizes = [len(part) for part in torch.arange(config.channels).tensor_split(tracks)]
        # With fewer tracks than distances, the layers alternate between distances.
        distances = [2**power for power in range(layers)]
        self.shifts = [
            [0, *(distances[(layer * (tracks - 1) + track) % layers] for track in range(tracks - 1))]
            if tracks <= layers
            else [0, *distances]
            for layer in range(layers)
        ]
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(config.channels, config.hidden), nn.GELU(), nn.Linear(config.hidden, config.channels)
            )
            for _ in range(layers)
        )
        self.dropout = Dropout(config.block_dropout)

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Layer`."""
        valid = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = zero_invalid(values, valid)
        for layer, shifts in zip(self.layers, self.shifts, strict=True):
            tracks = torch.split(zero_invalid(self.dropout(layer(values)), valid), self.sizes, -1)
            rolled = [roll_within(track, shift, lengths) for track, shift in zip(tracks, shifts, strict=True)]
            values = values + torch.cat(rolled, -1)
        return values


class CdilCnn(nn.Module):
    """Convolutions of three positions on the ring, dilated by 1, 2, 4, ..., each with a ReLU and a residual."""

    def __init__(self, config: BaselineConfig) -> None:
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

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Layer`."""
        valid = None if lengths is None else ~past_end(lengths, values.shape[1])
        values = zero_invalid(values, valid)
        for number, (convolution, residual) in enumerate(zip(self.convolutions, self.residuals, strict=True)):
            neighbors = [roll_within(values, shift, lengths) for shift in (-(2**number), 0, 2**number)]
            values = zero_invalid(convolution(torch.cat(neighbors, -1)).relu() + residual(values), valid)
        mixed: Tensor = self.dropout(values)
        return mixed


def roll_within(values: Tensor, shift: int, lengths: Tensor | None) -> Tensor:
    """Return ``out[b, i] = values[b, (i + shift) % length]``, each sequence on a ring of its own length."""
    if shift == 0:
        return values
    if lengths is None:
        return values.roll(-shift, 1)
    places = torch.arange(values.shape[1], device=values.device)
    rings = lengths.clamp(min=1)[:, None]
    sources = torch.where(places < rings, (places + shift) % rings, places)
    return values.gather(1, sources[..., None].expand_as(values))

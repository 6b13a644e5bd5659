"""Where chains start: near the identity, or at what the answers of a kind of task are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from paramixer.nn import init as parameters

if TYPE_CHECKING:
    from paramixer.nn.block import ParamixerBlock

INITS = ("paper", "identity", "even", "local", "average", "pairs")

# How far "near" reaches: CDIL's nine links, and as far with CHORD.
_NEIGHBOURS = 4


@torch.no_grad()
def start_(block: ParamixerBlock, init: str, generator: Generator | None) -> None:
    """Chains near the identity, but for what the others ask; docs/architecture.md says why."""
    offsets = block.offsets
    scale, bias = torch.full(offsets.shape, 0.1, device="cpu"), torch.zeros(offsets.shape, device="cpu")
    if init in ("local", "average"):
        scale[0, offsets[0].abs() <= _NEIGHBOURS] = 1.0
    if init != "identity":
        for layer in _layers(block):
            parameters.scale_keeping_(layer, generator)
    own = (offsets == 0).float()
    own /= own.sum(1, keepdim=True).clamp(min=1)
    # What a factor adds of its own input anyway, as a bias.
    added = own if block.residual == "factor" else 0 * own
    if init == "average":
        bias += 1 / bias.shape[1] - added
    if init == "pairs":
        taken, around = _around_and_along(offsets, block.length)
        bias += own + taken - added
    block.w2.mul_(scale[:, None].to(block.w2))
    block.b2.copy_(bias)
    if init == "pairs":
        for factor in {around, len(own) - 1}:
            _open_where_it_stands_out(block, factor, (own + taken)[factor])
        _tell_of_places(block)


def _around_and_along(offsets: Tensor, length: int) -> tuple[Tensor, int]:
    """Which links gather what lies around a position and then add up the ring, and the last factor that gathers.

    Around is near along the row and, where the second factor reaches them, in the rows below of a square picture.
    What stands out is wider than one position: steps of one, along rows and columns, are left to gathering.
    """
    bits = max(length - 1, 1).bit_length()
    powers, side = 2 ** torch.arange(1, bits, device="cpu"), 2 ** (bits // 2)
    taken, around = torch.zeros(offsets.shape, device="cpu"), 0
    taken[0] = _near(offsets[0], 1)
    if (offsets[1:2] == side).any():
        taken[1] = _near(offsets[1], side)
        around, powers = 1, powers[powers != side]
    for row, known, power in zip(taken[around + 1 :], offsets[around + 1 :], powers, strict=False):
        row[known == power] = 1
    return taken, around


def _near(offsets: Tensor, step: int) -> Tensor:
    """Which of the offsets are a few such steps."""
    return (offsets != 0) & (offsets % step == 0) & (offsets.abs() <= _NEIGHBOURS * step)


def _open_where_it_stands_out(block: ParamixerBlock, factor: int, taken: Tensor) -> None:
    """Where the first channel exceeds one, the factor takes this of its links, and elsewhere nothing.

    Half of the hidden units open there; the others are left to learn.
    """
    opening = (block.hidden + 1) // 2
    w1, b1, w2, b2 = (parameter[factor] for parameter in (block.w1, block.b1, block.w2, block.b2))
    w1[:, :opening] = 0
    w1[0, :opening] = torch.linspace(3, 5, opening).to(w1)
    b1[:opening] = -w1[0, :opening]
    w2.zero_()
    w2[:opening] = taken.to(w2) / opening
    b2 -= taken.to(b2)


def _tell_of_places(block: ParamixerBlock) -> None:
    """Half of g's hidden units tell where something stands out in the first channel, half where in the second."""
    opening = (block.hidden + 1) // 2
    first, second = _layers(block)
    first.weight *= 1.5
    first.weight[:, :2] = 0
    first.bias.fill_(-1.5)
    for units, channel in ((slice(opening), 0), (slice(opening, None), 1)):
        first.weight[units, channel : channel + 1] = 1.5
        told = second.weight[:, units]
        if told.shape[1] > 1:
            # Where, not how many: what all of them tell alike cancels out.
            told -= told.mean(1, keepdim=True)


def _layers(block: ParamixerBlock) -> tuple[nn.Linear, nn.Linear]:
    first, _, second = block.g
    assert isinstance(first, nn.Linear)
    assert isinstance(second, nn.Linear)
    return first, second

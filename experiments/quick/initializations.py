"""Initializations with which the paper's network learns in minutes; docs/architecture.md says what each answers.

They draw everything as ``paper`` does and change it then, so that a seed means the same numbers in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from pydantic import field_validator
from torch import Generator, Tensor, nn

from paramixer.nn import init
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.paper import PaperParamixer
from paramixer.validation import Positive, settings

# How many neighbors on either side a local chain reads: those of CDIL's nine links.
_NEIGHBORS = 4


@settings
class Initialization:
    """The section ``init`` of a quick recipe."""

    name: str = "paper"
    """paper or identity, as the package has them; local: chains that read the nearest neighbors and a head of zeros;
    even: chains close to the identity and a head with equal weights at all positions; pairs: Pathfinder-specific."""
    embedding_bound: Positive | None = None
    """Token embeddings are uniform within this bound; None for standard normal."""
    ordered_ids: bool = False
    """Whether token ids are ordered amounts, such as shades of gray: their embeddings then start as functions of the
    amount (see :func:`order_tokens_`)."""
    scale_by_data: bool = False
    """Whether every block is centered and scaled on a few training sequences, as in LSUV."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        known = (*init.INITIALIZATIONS["paper"], *INITIALIZATIONS)
        if name not in known:
            raise ValueError(f"init={name!r}; choose from {', '.join(known)}")
        return name


@torch.no_grad()
def initialize(model: PaperParamixer, options: Initialization, generator: Generator | None = None) -> None:
    """Draw all parameters of a model; scaling by data is left to the caller, who has the data.

    Args:
        model: changed in place.
        options: which initialization.
        generator: where parameters are drawn from; torch's global generator by default.
    """
    change = INITIALIZATIONS.get(options.name)
    name = options.name if change is None else "paper"
    init.initialize(model, name, generator, embedding_bound=options.embedding_bound)
    if options.ordered_ids:
        order_tokens_(model.embedding)
    if change is not None:
        change(model, generator, options)


def _init_local(model: PaperParamixer, generator: Generator | None, options: Initialization) -> None:
    """Chains that read the nearest neighbors, g that keeps the scale of the values, small positions, a head of zeros.

    A head that reads position 0 alone gets a last chain that averages over the sequence. Zeros, because over thousands
    of positions a drawn head would turn untrained values into large noise.
    """
    _shrink_positions_(model)
    _shrink_blocks_(model, generator, local=True)
    nn.init.zeros_(model.head.linear.weight)


def _init_even(model: PaperParamixer, generator: Generator | None, options: Initialization) -> None:
    """Like local without neighbors, and with a head of equal weights at all positions.

    What blocks learn from one position then holds at all of them, before the head has learned each of them.
    """
    _shrink_positions_(model)
    _shrink_blocks_(model, generator, local=False)
    draw_even_(model.head.linear.weight, model.config.channels, generator)


def _init_pairs(model: PaperParamixer, generator: Generator | None, options: Initialization) -> None:
    """Pathfinder-specific initialization: is there a path between the two bright dots of a picture?

    The first channel of X0 marks bright pixels (with ``ordered_ids``). The first factors gather the surroundings of
    every bright pixel, the next sum them over the ring, and the last hands the sum to the bright pixels alone.
    Positions are sums of waves, so that distances can be computed before single positions are learned. The head starts
    at zero.
    """
    if model.positions is not None:
        draw_harmonics_(model.positions.weight, 2 if options.ordered_ids else 1, generator)
    for block in model.paramixer_blocks():
        preserve_scale_(block, generator)
        gather_marked_(block)
    nn.init.zeros_(model.head.linear.weight)


INITIALIZATIONS: dict[str, Callable[[PaperParamixer, Generator | None, Initialization], None]] = {
    "local": _init_local,
    "even": _init_even,
    "pairs": _init_pairs,
}


@torch.no_grad()
def order_tokens_(embedding: nn.Module) -> None:
    """Shrink token embeddings and add functions of the share s of the largest id; the row of PAD stays zero.

    3 s^10 in the first channel marks nearly the largest ids, 2 s is the second channel.
    """
    if not isinstance(embedding, nn.Embedding):
        raise ValueError("ordered_ids=True is for token ids; real-valued input is a number already")
    share = torch.linspace(0, 1, embedding.num_embeddings, device=embedding.weight.device)
    embedding.weight.mul_(0.02)
    for channel, values in zip(embedding.weight.T, (3 * share**10, 2 * share), strict=False):
        channel += values
    if embedding.padding_idx is not None:
        embedding.weight[embedding.padding_idx] = 0


@torch.no_grad()
def draw_harmonics_(table: Tensor, first: int, generator: Generator | None) -> None:
    """Set positions ``[positions, channels]`` to waves that fit 1, 2, 4, ... times on the ring.

    Every channel from ``first`` on is an orthogonal mix of the sines and cosines of at least eight positions; the
    channels before are zero.
    """
    rows, channels = table.shape
    mixed = max(channels - first, 0)
    turns = 2.0 ** torch.arange(max(rows.bit_length() - 3, 1), device=table.device)
    phases = 2 * math.pi * turns * torch.arange(rows, device=table.device)[:, None] / rows
    waves = torch.cat([phases.sin(), phases.cos()], 1)
    weights = nn.init.orthogonal_(table.new_empty(waves.shape[1], mixed), generator=generator)
    table.zero_()
    table[:, channels - mixed :] = waves @ weights * max(math.sqrt(mixed / waves.shape[1]), 1.0)


@torch.no_grad()
def draw_even_(weight: Tensor, channels: int, generator: Generator | None) -> None:
    """Draw a head's weights ``[outputs, positions * channels]``, equal at all positions; answers of size two."""
    outputs, width = weight.shape
    equal = torch.empty(outputs, channels, dtype=weight.dtype, device=weight.device)
    nn.init.normal_(equal, std=2 / math.sqrt(width), generator=generator)
    weight.copy_(equal.repeat(1, width // channels))


def preserve_scale_(block: ParamixerBlock, generator: Generator | None) -> None:
    """Draw g by Kaiming's rule without biases: its output is about as large as its input, and centered."""
    for layer in block.g.layers():
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(layer.bias)


@torch.no_grad()
def keep_neighbors_(block: ParamixerBlock) -> None:
    """Bring a chain near the identity, but for the first factor's links to the nearest neighbors."""
    near = block.offsets[0].abs() <= _NEIGHBORS
    neighbors = block.w2[0, :, near].clone()
    init.shrink_links_(block)
    block.w2[0, :, near] = neighbors


@torch.no_grad()
def average_links_(block: ParamixerBlock) -> None:
    """Set the biases of the link MLPs so that every factor averages over its links, its residual included."""
    block.b2.copy_(1 / block.offsets.shape[1] - _residual_links(block))


@torch.no_grad()
def gather_marked_(block: ParamixerBlock) -> None:
    """Chain and g of the Pathfinder-specific initialization; a position is marked if channel 0 of X0 exceeds one."""
    own, (gathered, last_gathering) = _self_links(block), _gather_and_sum_links(block.offsets, block.length)
    init.shrink_links_(block)
    block.b2.copy_(own + gathered - _residual_links(block))
    for factor in {last_gathering, len(own) - 1}:
        _gate_by_mark_(block, factor, (own + gathered)[factor])
    _detect_marks_(block)


def _shrink_positions_(model: PaperParamixer) -> None:
    """Which token stands at a position matters more than where it stands."""
    if model.positions is not None:
        model.positions.weight.mul_(0.1)


def _shrink_blocks_(model: PaperParamixer, generator: Generator | None, local: bool) -> None:
    """Start all chains near the identity; for a head that reads position 0 alone, the last one averages.

    Position 0 sees the whole sequence from the start only through a chain that reaches all of it.
    """
    blocks = model.paramixer_blocks()
    averaging = blocks[-1] if model.config.pooling == "cls" else None
    for block in blocks:
        (keep_neighbors_ if local or block is averaging else init.shrink_links_)(block)
        preserve_scale_(block, generator)
    if averaging is not None:
        average_links_(averaging)


def _self_links(block: ParamixerBlock) -> Tensor:
    """Weights ``[factors, links]`` that make every factor the identity, as far as it links positions to themselves."""
    own = (block.offsets == 0).float()
    return own / own.sum(1, keepdim=True).clamp(min=1)


def _residual_links(block: ParamixerBlock) -> Tensor:
    """What the residual of every factor adds, as weights ``[factors, links]``."""
    own = _self_links(block)
    return own if block.residual == "factor" else torch.zeros_like(own)


def _gather_and_sum_links(offsets: Tensor, length: int) -> tuple[Tensor, int]:
    """Return which links gather the surroundings of a position or sum over the ring, and the last factor that gathers.

    The surroundings are the neighbors along the row and, if the second factor reaches them, along the column of a
    square picture. Marks are wider than one position: steps of one row or column are left to gathering.
    """
    bits = max(length - 1, 1).bit_length()
    powers, side = 2 ** torch.arange(1, bits, device="cpu"), 2 ** (bits // 2)
    weights, last_gathering = torch.zeros(offsets.shape, device="cpu"), 0
    weights[0] = _is_near(offsets[0], 1)
    if (offsets[1:2] == side).any():
        weights[1] = _is_near(offsets[1], side)
        last_gathering, powers = 1, powers[powers != side]
    summing = slice(last_gathering + 1, None)
    for row, row_offsets, power in zip(weights[summing], offsets[summing], powers, strict=False):
        row[row_offsets == power] = 1
    return weights, last_gathering


def _is_near(offsets: Tensor, step: int) -> Tensor:
    return (offsets != 0) & (offsets % step == 0) & (offsets.abs() <= _NEIGHBORS * step)


def _gate_by_mark_(block: ParamixerBlock, factor: int, weights: Tensor) -> None:
    """Give a factor these weights ``[links]`` at marked positions and zero elsewhere.

    Half of the hidden units of the link MLP detect the mark; the others are left to learn.
    """
    half = (block.hidden + 1) // 2
    w1, b1, w2, b2 = (parameter[factor] for parameter in (block.w1, block.b1, block.w2, block.b2))
    w1[:, :half] = 0
    w1[0, :half] = torch.linspace(3, 5, half).to(w1)
    b1[:half] = -w1[0, :half]
    w2.zero_()
    w2[:half] = weights.to(w2) / half
    b2 -= weights.to(b2)


def _detect_marks_(block: ParamixerBlock) -> None:
    """Make half of g's hidden units detect large values of the first channel, the other half of the second."""
    half = (block.hidden + 1) // 2
    first, second = block.g.layers()
    first.weight *= 1.5
    first.weight[:, :2] = 0
    first.bias.fill_(-1.5)
    for units, channel in ((slice(half), 0), (slice(half, None), 1)):
        first.weight[units, channel : channel + 1] = 1.5
        outgoing = second.weight[:, units]
        if outgoing.shape[1] > 1:
            # Where a mark is, not how many there are: the common part cancels.
            outgoing -= outgoing.mean(1, keepdim=True)

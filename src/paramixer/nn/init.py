"""Initialization, in one place: functions that draw or set the parameters of an existing model, to be called again.

Every draw takes a generator; None is torch's global generator. The order of the draws is fixed.

The default network has one initialization, with no task in it (``prenorm``):

- linear layers are normal with deviation 1 / sqrt(inputs), without bias: their output is as large as their input;
- residual branches end in layers of 1 / sqrt(2 L) of that, so that L layers double the variance at most;
- chains start near the identity: a factor's links are small random numbers beside its residual, mostly the same at all
  positions, a little of the position's own;
- tables of n-grams start at zero, templates as cosines, positions small;
- the head starts small, so that the first answers are nearly equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from pydantic import field_validator
from torch import Generator, Tensor, nn

from paramixer.validation import Positive, settings

if TYPE_CHECKING:
    from paramixer.nn.block import ParamixerBlock
    from paramixer.nn.layer import ParamixerLayer
    from paramixer.nn.model import Paramixer

INITIALIZATIONS = {"paper": ("paper", "identity"), "prenorm": ("prenorm",)}
"""Names of the initializations of each network, the default one first."""

# Sizes at which parts of the default network start; the scale of a part is that of its input times this.
_LINKS, _LINK_BIASES, _POSITIONS, _HEAD = 0.1, 0.1, 0.1, 0.1

_skipping = ContextVar("skipping", default=False)


@settings
class InitOptions:
    """Which initialization, and how token embeddings are drawn."""

    name: str | None = None
    """paper: as torch draws linear layers. identity: the paper's network with chains close to the identity. prenorm:
    the default network's only one. None for the network's own."""
    embedding_bound: Positive | None = None
    """In the paper's network and the baselines, token embeddings are uniform within this bound; None for standard
    normal."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str | None) -> str | None:
        names = [known for network in INITIALIZATIONS.values() for known in network]
        if name is not None and name not in names:
            raise ValueError(f"init={name!r}; choose from {', '.join(names)}")
        return name


def initialize(model: Paramixer, name: str | None = None, generator: Generator | None = None, **options: Any) -> None:
    """Draw all parameters of a model; a second call with an equal generator gives equal parameters.

    Args:
        model: changed in place.
        name: one of :data:`INITIALIZATIONS` of its network; by default the first.
        generator: where parameters are drawn from; torch's global generator by default.
        options: ``embedding_bound``, see :class:`InitOptions`.
    """
    chosen, names = InitOptions(name=name, **options), INITIALIZATIONS[model.config.layer]
    if chosen.name is not None and chosen.name not in names:
        raise ValueError(f"init={name!r} is not for layer={model.config.layer!r}; choose from {', '.join(names)}")
    if model.config.layer == "prenorm":
        if chosen.embedding_bound is not None:
            raise ValueError(f"embedding_bound={chosen.embedding_bound} is for layer='paper'; leave it out")
        _draw_prenorm(model, generator)
    else:
        _draw_paper(model, generator, chosen)


def _draw_paper(model: Any, generator: Generator | None, options: InitOptions) -> None:
    """Draw embedding, positions, the blocks one after another (link MLPs ``w1 b1 w2 b2``, then g), the head."""
    draw_inputs_(model.embedding, model.positions, generator, options.embedding_bound)
    for block in model.paramixer_blocks():
        block.reset_parameters(generator)
    model.head.reset_parameters(generator)
    if options.name == "identity":
        for block in model.paramixer_blocks():
            shrink_links_(block)


def _draw_prenorm(model: Any, generator: Generator | None) -> None:
    """Draw stem, positions, the layers one after another, poolings, the head."""
    model.stem.reset_parameters(generator)
    if model.places is not None:
        draw_normal_(model.places, generator, _POSITIONS)
    for layer in model.paramixer_blocks():
        layer.reset_parameters(generator)
    model.norm.reset_parameters()
    model.pooling.reset_parameters(generator)
    if model.stem_pooling is not None:
        model.stem_pooling.reset_parameters(generator)
        model.standardize.reset_parameters()
    draw_normal_(model.readout, generator, _HEAD)


def draw_layer_(layer: ParamixerLayer, generator: Generator | None) -> None:
    """Draw one layer of the default network, in the order read, w1, w2, b2, write, up, down."""
    if _skipping.get():
        return
    layer.norm.reset_parameters()
    layer.mlp_norm.reset_parameters()
    draw_normal_(layer.read, generator)
    nn.init.normal_(layer.w1, std=layer.link_width**-0.5, generator=generator)
    nn.init.zeros_(layer.b1)
    nn.init.normal_(layer.w2, std=_LINKS * layer.hidden**-0.5, generator=generator)
    nn.init.normal_(layer.b2, std=_LINK_BIASES, generator=generator)
    small = (2 * layer.depth) ** -0.5
    draw_normal_(layer.write, generator, small)
    draw_normal_(layer.up, generator)
    draw_normal_(layer.down, generator, small)


def draw_normal_(layer: nn.Linear, generator: Generator | None, scale: float = 1.0) -> None:
    """Draw normal weights of deviation scale / sqrt(inputs), and set the bias to zero."""
    nn.init.normal_(layer.weight, std=scale / math.sqrt(layer.in_features), generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class UndrawnLinear(nn.Linear):
    """A linear layer whose constructor draws nothing: its parameters are uninitialized until they are drawn.

    ``torch.nn.utils.skip_init`` does the same by way of the meta device, for which torch loads sympy.
    """

    def reset_parameters(self) -> None:
        """Leave the parameters as they are; see :func:`draw_linear_`."""


@contextmanager
def skip_draws() -> Iterator[None]:
    """Let blocks and heads be built with uninitialized parameters, which uses no random numbers."""
    token = _skipping.set(True)
    try:
        yield
    finally:
        _skipping.reset(token)


def draw_uniform_(fan_in: int, *tensors: Tensor, generator: Generator | None) -> None:
    """Draw weights and biases of a linear layer as torch does: uniform within 1 / sqrt(fan_in)."""
    if _skipping.get():
        return
    bound = 1 / math.sqrt(fan_in)
    for tensor in tensors:
        nn.init.uniform_(tensor, -bound, bound, generator=generator)


def draw_linear_(layer: nn.Linear, generator: Generator | None) -> None:
    """Draw weight, then bias of a linear layer as torch does."""
    draw_uniform_(layer.in_features, layer.weight, layer.bias, generator=generator)


def draw_inputs_(
    embedding: nn.Module, positions: nn.Embedding | None, generator: Generator | None, bound: float | None = None
) -> None:
    """Draw the embedding of tokens (see :func:`draw_tokens_`) or numbers, then the positions (standard normal)."""
    if isinstance(embedding, nn.Embedding):
        draw_tokens_(embedding, generator, bound)
    elif isinstance(embedding, nn.Linear):
        draw_linear_(embedding, generator)
    if positions is not None:
        nn.init.normal_(positions.weight, generator=generator)


def draw_tokens_(table: nn.Embedding, generator: Generator | None, bound: float | None = None) -> None:
    """Draw token embeddings: uniform within the bound, or standard normal without; the row of PAD is zero."""
    if bound is None:
        nn.init.normal_(table.weight, generator=generator)
    else:
        nn.init.uniform_(table.weight, -bound, bound, generator=generator)
    if table.padding_idx is not None:
        with torch.no_grad():
            table.weight[table.padding_idx] = 0


@torch.no_grad()
def shrink_links_(block: ParamixerBlock) -> None:
    """Scale the last layer of every link MLP to a tenth and zero its bias: with a residual, A is near the identity."""
    block.w2.mul_(0.1)
    block.b2.zero_()

"""How parameters start. Every draw takes a generator; without one it is torch's global generator."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils import skip_init

from paramixer.ops.lookup import Embedding


def linear_(fan_in: int, *tensors: Tensor, generator: Generator | None) -> None:
    """Weights and biases of a linear layer as torch draws them: uniform within 1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in)
    for tensor in tensors:
        nn.init.uniform_(tensor, -bound, bound, generator=generator)


def linear(inputs: int, outputs: int, generator: Generator | None) -> nn.Linear:
    """A linear layer drawn from the generator."""
    # Without torch's own draw, which would come from the global generator.
    layer: nn.Linear = skip_init(nn.Linear, inputs, outputs, device=_device())  # type: ignore[no-untyped-call]
    linear_(inputs, layer.weight, layer.bias, generator=generator)
    return layer


def scale_keeping_(layer: nn.Linear, generator: Generator | None) -> None:
    """Before or after a GELU the layer's output is about as large as its input, and centred."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(layer.bias)


def even_(weight: Tensor, channels: int, generator: Generator | None) -> None:
    """A head's weights ``[outputs, positions * channels]``, the same for all positions; answers of size two."""
    outputs, width = weight.shape
    alike = torch.empty(outputs, channels, dtype=weight.dtype, device=weight.device)
    nn.init.normal_(alike, std=2 / math.sqrt(width), generator=generator)
    with torch.no_grad():
        weight.copy_(alike.repeat(1, width // channels))


def embedding(
    rows: int, channels: int, bound: float | None, pad: int | None, generator: Generator | None, amounts: bool = False
) -> Embedding:
    """A table drawn uniformly within the bound, or normally where there is none; the row of pad is zero and frozen.

    Of amounts the first channel tells what is nearly the largest, up to 3, the second how large they are, up to 2.
    """
    table: Embedding = skip_init(Embedding, rows, channels, pad, device=_device())  # type: ignore[no-untyped-call]
    if amounts:
        share = torch.linspace(0, 1, rows, device=table.weight.device)
        nn.init.normal_(table.weight, std=0.02, generator=generator)
        for channel, started in zip(table.weight.data.T, (3 * share**10, 2 * share), strict=False):
            channel += started
    elif bound is None:
        nn.init.normal_(table.weight, generator=generator)
    else:
        nn.init.uniform_(table.weight, -bound, bound, generator=generator)
    if pad is not None:
        table.weight.data[pad] = 0
    return table


def harmonics_(table: Tensor, first: int, generator: Generator | None) -> None:
    """Positions ``[positions, channels]`` from the channel first on: waves that fit 1, 2, 4, ... times on the ring.

    Every channel is a mix of the waves of at least eight positions, sines and cosines; those before the first are
    zero.
    """
    rows, channels = table.shape
    mixed = max(channels - first, 0)
    turns = 2.0 ** torch.arange(max(rows.bit_length() - 3, 1), device=table.device)
    phases = 2 * math.pi * turns * torch.arange(rows, device=table.device)[:, None] / rows
    waves = torch.cat([phases.sin(), phases.cos()], 1)
    weights = nn.init.orthogonal_(table.new_empty(waves.shape[1], mixed), generator=generator)
    with torch.no_grad():
        table.zero_()
        table[:, channels - mixed :] = waves @ weights * max(math.sqrt(mixed / waves.shape[1]), 1.0)


def _device() -> torch.device:
    return torch.get_default_device()

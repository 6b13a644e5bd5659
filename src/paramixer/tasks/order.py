"""Temporal Order: in which order do two signals, each X or Y, stand among noise?"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

SYMBOLS = "abcdXY"
"""Token ids 0 to 5; the first four are noise."""


def draw(batch: int, length: int, generator: Generator) -> Tensor:
    """Token ids ``[batch, length]``: noise with a signal at each of two distinct positions."""
    tokens = torch.randint(4, (batch, length), generator=generator)
    places = torch.rand(batch, length, generator=generator).topk(2).indices
    return tokens.scatter_(1, places, torch.randint(4, 6, (batch, 2), generator=generator))


def targets(tokens: Tensor) -> Tensor:
    """Classes XX, XY, YX, YY = 0 to 3 of token ids ``[batch, length]`` with two signals each."""
    signals = tokens[tokens >= 4].reshape(-1, 2) - 4
    return 2 * signals[:, 0] + signals[:, 1]


def encode(symbols: str) -> Tensor:
    """Token ids ``[length]`` of a string over the six symbols."""
    return torch.tensor([SYMBOLS.index(symbol) for symbol in symbols])

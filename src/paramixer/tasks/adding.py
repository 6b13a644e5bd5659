"""The Adding problem: read two marked numbers out of a long sequence and add them."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

TOLERANCE = 0.04
"""A prediction that is off by this much or more counts as wrong."""


def draw(batch: int, length: int, generator: Generator) -> Tensor:
    """Sequences ``[batch, length, 2]`` of (number, mark): numbers from (-1, 1), two distinct positions marked."""
    numbers = torch.rand(batch, length, generator=generator) * 2 - 1
    marked = torch.rand(batch, length, generator=generator).topk(2).indices
    return torch.stack([numbers, torch.zeros(batch, length).scatter_(1, marked, 1.0)], -1)


def targets(sequences: Tensor) -> Tensor:
    """0.5 + the sum of the marked numbers / 4, for sequences ``[batch, length, 2]``."""
    numbers, marks = sequences.unbind(-1)
    return 0.5 + (numbers * marks).sum(-1) / 4

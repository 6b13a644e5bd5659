"""Random arguments for the operators, at awkward sizes."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Generator, Tensor

import paramixer as pm

RESIDUALS = ("factor", "block", "none")
PROTOCOLS = {
    "chord": pm.Chord(),
    "chord with log2 N links": pm.Chord(links=3),
    "cdil 3": pm.Cdil(links=3),
    "cdil 9": pm.Cdil(links=9),
    "table": pm.Links([[0, -7, 13, 1000], [5, 5, 0, -64]]),
    "causal": pm.Links([[0, -1, -3], [0, -2, -70], [-1, -1, -4]]),
}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
AVAILABLE = [name for name, availability in pm.backends().items() if availability]


def make_offsets(protocol: pm.Chord | pm.Cdil | pm.Links, length: int) -> Tensor:
    """The protocol's offsets; length 1 uses those of length 2."""
    return protocol.offsets(max(length, 2))


def make_lengths(batch: int, length: int) -> dict[str, list[int] | None]:
    """Lengths of every kind: not given, all full, all 0, all 1, and mixed."""
    mixed = list(itertools.islice(itertools.cycle([length, 0, min(1, length), min(2, length), length // 2]), batch))
    return {"none": None, "full": [length] * batch, "zero": [0] * batch, "one": [1] * batch, "mixed": mixed}


def make_factor(
    generator: Generator, batch: int, length: int, channels: int, links: int, dtype: torch.dtype
) -> list[Tensor]:
    """Random weights and values of one factor."""
    shapes = [(batch, length, links), (batch, length, channels)]
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def make_chain(
    generator: Generator,
    offsets: Tensor,
    batch: int = 2,
    length: int = 7,
    inputs: int = 3,
    channels: int = 4,
    hidden: int = 5,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """Inputs, values, w1, b1, w2, b2 for these offsets, scaled so that long chains stay of order one."""
    factors, links = offsets.shape
    shapes = [
        (batch, length, inputs),
        (batch, length, channels),
        (factors, inputs, hidden),
        (factors, hidden),
        (factors, hidden, links),
        (factors, links),
    ]
    scales = [1, 1, inputs**-0.5, 0.5, (hidden * links) ** -0.5, links**-0.5]
    return [
        torch.randn(shape, generator=generator, dtype=dtype) * scale
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def make_heads(
    generator: Generator,
    offsets: Tensor,
    batch: int = 2,
    length: int = 7,
    inputs: int = 3,
    channels: int = 4,
    hidden: int = 5,
    shared: bool = False,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """The same for a chain with heads and offsets ``[heads, factors, links]``; inputs and channels are those of a head.

    With ``shared`` all heads read the same inputs, otherwise each has its own slice.
    """
    heads = [make_chain(generator, table, batch, length, inputs, channels, hidden, dtype) for table in offsets]
    x, values, *parameters = zip(*heads, strict=True)
    return [x[0] if shared else torch.cat(x, 2), torch.cat(values, 2), *(torch.stack(one) for one in parameters)]


def put_nan_past(tensor: Tensor, lengths: list[int] | None) -> Tensor:
    """The tensor with NaN in the rows past each sequence's length."""
    if lengths is None:
        return tensor
    past = torch.arange(tensor.shape[1]) >= torch.tensor(lengths)[:, None]
    return tensor.masked_fill(past[..., None], torch.nan)


def assert_close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Equal up to the tolerance relative to the largest entry; NaN is never equal."""
    actual, expected = actual.detach(), expected.detach()
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.numel():
        scale = max(float(expected.abs().max()), 1e-30)
        worst = float((actual - expected).abs().max()) / scale
        assert worst <= tolerance, f"off by {worst:.3g} of the largest entry"


def compute_gradients(run: Any, tensors: list[Tensor]) -> list[Tensor]:
    """Gradients of a weighted sum of run(*tensors), by autograd; every output has its own weight."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    output = run(*leaves)
    ramp = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return list(torch.autograd.grad((output * ramp).sum(), leaves, materialize_grads=True))

"""No speed without a right result: output and every gradient against the reference in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from paramixer.bench.case import Case, Tensors
from paramixer.ops import backend, paramix

# Relative to the largest entry of each tensor. Sums over 10^5 tokens in float32 stay ten times below it.
TOLERANCE = 1e-4


class Truth(NamedTuple):
    """What the reference says in float64."""

    output: Tensor
    gradients: tuple[Tensor, ...]


def truth(case: Case, tensors: Tensors, lengths: Tensor | None = None) -> Truth:
    """Output and gradients of the reference for ``case.upstream()``."""
    wide = Tensors(*(tensor.detach().double().requires_grad_() for tensor in tensors))
    with backend("reference"):
        output = paramix(*wide, case.offsets(), lengths=lengths)
        gradients = torch.autograd.grad(output, wide, case.upstream().double())
    return Truth(output.detach(), gradients)


def errors(run: Callable[..., Tensor], case: Case, tensors: Tensors, expected: Truth) -> dict[str, float]:
    """How far output and each gradient are off, relative to the largest entry of each; infinite where it is NaN."""
    output = run(*tensors)
    gradients = torch.autograd.grad(output, tensors, case.upstream(), materialize_grads=True)
    pairs = {"output": (output.detach(), expected.output)}
    for name, found, wanted in zip(Tensors._fields, gradients, expected.gradients, strict=True):
        pairs[f"gradient of {name}"] = (found, wanted)
    return {name: _error(found, wanted) for name, (found, wanted) in pairs.items()}


def complaint(found: dict[str, float]) -> str | None:
    """What is wrong with a result; None where it agrees with the reference."""
    name = max(found, key=lambda name: found[name])
    if found[name] <= TOLERANCE:
        return None
    return f"wrong: its {name} is off by {found[name]:.1e} of the largest entry"


def _error(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape:
        return math.inf
    error = float((found.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
    return error if math.isfinite(error) else math.inf

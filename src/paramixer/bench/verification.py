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


class Expected(NamedTuple):
    """Output and gradients of the reference in float64."""

    output: Tensor
    gradients: tuple[Tensor, ...]


def compute_expected(case: Case, tensors: Tensors, lengths: Tensor | None = None) -> Expected:
    """Compute output and gradients of the reference for ``case.upstream()``."""
    wide = Tensors(*(tensor.detach().double().requires_grad_() for tensor in tensors))
    with backend("reference"):
        output = paramix(*wide, case.offsets(), lengths=lengths)
        gradients = torch.autograd.grad(output, wide, case.upstream().double())
    return Expected(output.detach(), gradients)


def relative_errors(run: Callable[..., Tensor], case: Case, tensors: Tensors, expected: Expected) -> dict[str, float]:
    """Errors of output and gradients, relative to the largest entry of each; infinite for NaN or a wrong shape."""
    output = run(*tensors)
    gradients = torch.autograd.grad(output, tensors, case.upstream(), materialize_grads=True)
    errors = {"output": _relative_error(output.detach(), expected.output)}
    for name, gradient, wanted in zip(Tensors._fields, gradients, expected.gradients, strict=True):
        errors[f"gradient of {name}"] = _relative_error(gradient, wanted)
    return errors


def describe_mismatch(errors: dict[str, float]) -> str | None:
    """Say which result is wrong and by how much; None if all agree with the reference."""
    name = max(errors, key=lambda name: errors[name])
    if errors[name] <= TOLERANCE:
        return None
    return f"wrong: its {name} is off by {errors[name]:.1e} of the largest entry"


def verify(
    run: Callable[..., Tensor], case: Case, tensors: Tensors | None = None, lengths: Tensor | None = None
) -> str | None:
    """Compare a run with the reference; returns what is wrong, or None."""
    tensors = tensors or case.tensors()
    return describe_mismatch(relative_errors(run, case, tensors, compute_expected(case, tensors, lengths)))


def _relative_error(result: Tensor, expected: Tensor) -> float:
    if result.shape != expected.shape:
        return math.inf
    error = float((result.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
    return error if math.isfinite(error) else math.inf

"""Compares the Triton backend with the reference in float64, to the tolerances of the CPU backend.

Kernels run in the interpreter on CPU tensors, or compiled on a GPU; the reference always runs on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ops import cases
from ops.instruction_sets import assert_same_bits, make_grad, measure_errors, run, run_exactly
from paramixer.ops import reference, triton
from paramixer.ops.chain import Chain

__all__ = ["DEVICE", "assert_accurate", "assert_same_bits", "backend", "make_chain", "move", "run_backend"]

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
ROOM = 16 * 2**-23


def move(value: Any, device: str) -> Any:
    """The tensors of an argument or a result on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Chain):
        return Chain(*(move(part, device) for part in value))
    if isinstance(value, tuple):
        return tuple(move(part, device) for part in value)
    return value


class _Backend:
    """The backend's functions, for tensors on the CPU."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(triton, name)
        return lambda *arguments: move(function(*(move(one, DEVICE) for one in arguments)), "cpu")


backend = _Backend()


def make_chain(
    generator: torch.Generator,
    heads: int | None = None,
    factors: int = 2,
    links: int = 3,
    batch: int = 2,
    length: int = 17,
    inputs: int = 3,
    hidden: int = 5,
    channels: int = 4,
    residual: str = "factor",
    lengths: list[int] | None = None,
    ring: bool = True,
    shared: bool = False,
    reach: int = 40,
) -> Chain:
    """A random float32 chain, NaN past the lengths; inputs and channels are those of one head."""
    shape = (factors, links) if heads is None else (heads, factors, links)
    offsets = torch.randint(-reach, reach, shape, generator=generator)
    sizes = batch, length, inputs, channels, hidden
    if heads is None:
        tensors = cases.make_chain(generator, offsets, *sizes, torch.float32)
    else:
        tensors = cases.make_heads(generator, offsets, *sizes, shared, torch.float32)
    dirty = [cases.put_nan_past(tensor, lengths) for tensor in tensors[:2]]
    return Chain(*dirty, *tensors[2:], offsets, None if lengths is None else torch.tensor(lengths), residual, ring)


def run_backend(chain: Chain, checkpoint_every: int = 1) -> dict[str, Tensor]:
    """Output and gradients of the Triton backend by name."""
    return run(backend, chain, make_grad(chain), checkpoint_every)


def assert_accurate(chain: Chain, checkpoint_every: int = 1) -> None:
    """Errors at most twice those of plain PyTorch, plus some roundings for chance in few numbers."""
    grad = make_grad(chain)
    exact = run_exactly(chain, grad)
    results = run_backend(chain, checkpoint_every)
    for name, tensor in results.items():
        assert tensor.dtype == torch.float32
        assert torch.isfinite(tensor).all(), name
    plain = measure_errors(run(reference, chain, grad, 1), exact)
    for name, kinds in measure_errors(results, exact).items():
        for kind, error in kinds.items():
            limit = 2 * plain[name][kind] + ROOM
            assert error <= limit, f"{name}, {kind}: {error:.3g}, limit {limit:.3g}"

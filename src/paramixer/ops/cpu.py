"""The C++ engine: checks out what it serves, allocates its outputs, and calls the compiled kernels."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from paramixer.ops.chain import Chain, kept_factors

# In elements: below this, torch's own allocation is no slower.
_LARGE = 2**18

_engine: ModuleType | None = None
_why: str | None = None
try:
    from paramixer.ops import _engine as _compiled

    _engine = _compiled
except ImportError as error:
    _note = Path(__file__).with_name("engine_missing.txt")
    _why = _note.read_text() if _note.exists() else f"its compiled module does not load: {error}"


def missing() -> str | None:
    """Why this engine cannot run here; None where it can."""
    return _why


def refuses(values: Tensor) -> str | None:
    """Why this engine cannot serve such tensors; None where it can."""
    if values.device.type != "cpu":
        return f"it serves tensors on the CPU, these are on {values.device}"
    if values.dtype != torch.float32:
        return f"it computes in float32, these are {values.dtype}"
    return None


def link_mix(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """See ``reference.link_mix``."""
    mixed = _like(values)
    _kernels().link_mix(*_plain(weights, values), *_indices(offsets, lengths), ring, mixed)
    return mixed


def link_mix_backward(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """See ``reference.link_mix_backward``."""
    grads = _like(weights), _like(values)
    _kernels().link_mix_backward(*_plain(grad, weights, values), *_indices(offsets, lengths), ring, *grads)
    return grads


def paramix(chain: Chain, keep: int) -> tuple[Tensor, Tensor]:
    """See ``reference.paramix``."""
    mixed = _like(chain.values)
    kept = _empty(kept_factors(chain.factors, keep), *chain.values.shape)
    if chain.lengths is not None:
        # Past the lengths nothing is written; those rows are zero as the reference's are.
        kept.zero_()
    _kernels().paramix(*_arguments(chain), keep, mixed, kept)
    return mixed, kept


def paramix_backward(grad: Tensor, chain: Chain, keep: int, kept: Tensor) -> tuple[Tensor, ...]:
    """See ``reference.paramix_backward``."""
    grads = tuple(_like(tensor) for tensor in chain[:6])
    _kernels().paramix_backward(*_plain(grad), *_arguments(chain), keep, *_plain(kept), *grads)
    return grads


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """See ``reference.dropout``."""
    dropped = _like(values)
    _kernels().dropout(*_plain(values), p, seed, dropped)
    return dropped


def _kernels() -> ModuleType:
    assert _engine is not None, _why
    return _engine


def _arguments(chain: Chain) -> tuple[object, ...]:
    return (*_plain(*chain[:6]), *_indices(chain.offsets, chain.lengths), chain.residual, chain.ring)


def _indices(offsets: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return offsets.contiguous(), None if lengths is None else lengths.cpu().contiguous()


def _plain(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Contiguous tensors without history, which is what the kernels' borrowed pointers need."""
    return tuple(tensor.detach().contiguous() for tensor in tensors)


def _like(tensor: Tensor) -> Tensor:
    return _empty(*tensor.shape)


def _empty(*shape: int) -> Tensor:
    """Large tensors come from the engine's memory, which is kept from step to step; the system's must be mapped anew."""
    if math.prod(shape) < _LARGE:
        return torch.empty(shape)
    tensor: Tensor = _kernels().empty(shape)
    return tensor

"""The CPU backend: allocates outputs and calls the compiled C++ kernels."""

from __future__ import annotations

import math
import os
import sysconfig
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from paramixer.ops import reference
from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.chain import Chain, checkpoint_shape, compute_dtype
from paramixer.ops.ngram_layout import NgramLayout

takes_half = False

# In elements: for smaller tensors torch's own allocator is as fast.
_LARGE = 2**18

_engine: ModuleType | None = None
_unavailable: str | None = None
try:
    from paramixer.ops import _engine as _compiled

    _engine = _compiled
except ImportError as error:
    # The build leaves its reason beside this file in a wheel, and in site-packages for an editable install.
    _folders = Path(__file__).parent, Path(sysconfig.get_path("platlib"), "paramixer", "ops")
    _notes = [folder / "engine_missing.txt" for folder in _folders]
    _unavailable = next((n.read_text() for n in _notes if n.exists()), f"its compiled module does not load: {error}")


def _limit_cache() -> None:
    """Apply PARAMIXER_CACHE_BYTES: the most freed memory that is cached for later calls; 0 caches none."""
    limit = os.environ.get("PARAMIXER_CACHE_BYTES")
    if not limit or _engine is None:
        return
    if not (limit.isascii() and limit.isdigit() and int(limit) < 2**63):
        raise ValueError(f"PARAMIXER_CACHE_BYTES={limit!r} is not a number of bytes; give one such as 1000000000, or 0")
    _engine.set_cache_limit(int(limit))


_limit_cache()


def release_memory() -> int:
    """Return the memory cached by the CPU backend to the system, and return its size in bytes.

    The backend keeps freed memory for its next calls, up to an eighth of the machine's memory or to the limit in the
    environment variable PARAMIXER_CACHE_BYTES (0 keeps none). Tensors in use are not affected.
    """
    return 0 if _engine is None else int(_engine.release_memory())


def unavailable_reason() -> str | None:
    """Return why this backend cannot run in this process; None if it can."""
    return _unavailable


def instruction_set() -> str | None:
    """Return the instruction set of the kernels in use; None without the compiled module."""
    return None if _engine is None else str(_engine.instruction_set())


def unsupported_reason(values: Tensor) -> str | None:
    """Return why this backend cannot compute with such tensors; None if it can."""
    if values.device.type != "cpu":
        return f"it serves tensors on the CPU, these are on {values.device}"
    if compute_dtype(values.dtype) != torch.float32:
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


def paramix(chain: Chain, checkpoint_every: int) -> tuple[Tensor, Tensor]:
    """See ``reference.paramix``."""
    mixed = _like(chain.values)
    checkpoints = _empty(*checkpoint_shape(chain.values, chain.w1, checkpoint_every))
    if chain.lengths is not None:
        # The kernels write nothing past the lengths; those rows are zero as in the reference.
        checkpoints.zero_()
    _kernels().paramix(*_arguments(_expand_rows(chain)), checkpoint_every, mixed, checkpoints)
    return mixed, checkpoints


def paramix_backward(grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor) -> tuple[Tensor, ...]:
    """See ``reference.paramix_backward``."""
    table, row_ids, chain = chain.inputs, chain.row_ids, _expand_rows(chain)
    grads = tuple(_like(tensor) for tensor in chain[:6])
    _kernels().paramix_backward(*_plain(grad), *_arguments(chain), checkpoint_every, *_plain(checkpoints), *grads)
    if chain.row_ids is row_ids:
        return grads
    assert row_ids is not None
    return lookup_backward(grads[0].flatten(0, 1), row_ids.flatten().cpu(), table.shape[0]), *grads[1:]


def mlp(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """See ``reference.mlp``."""
    out = _empty(*inputs.shape[:2], w2.shape[1])
    _kernels().mlp(*_plain(inputs, w1, b1, w2, b2), _on_cpu(lengths), out)
    return out


def mlp_backward(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, ...]:
    """See ``reference.mlp_backward``."""
    grads = tuple(_like(tensor) for tensor in (inputs, w1, b1, w2, b2))
    _kernels().mlp_backward(*_plain(grad, inputs, w1, b1, w2, b2), _on_cpu(lengths), *grads)
    return grads


def lookup(ids: Tensor, table: Tensor) -> Tensor:
    """See ``reference.lookup``."""
    if table.dtype != torch.float32:
        return reference.lookup(ids, table)
    rows = _empty(*ids.shape, table.shape[1])
    torch.index_select(table.detach(), 0, ids.reshape(-1), out=rows.view(-1, table.shape[1]))
    return rows


def lookup_backward(grad: Tensor, ids: Tensor, rows: int) -> Tensor:
    """See ``reference.lookup_backward``."""
    dtable = torch.empty(rows, grad.shape[1])
    _kernels().lookup_backward(*_plain(grad, ids), dtable)
    return dtable


def ngram_rows(
    tokens: Tensor, lengths: Tensor | None, layout: NgramLayout, admitted: Tensor | None, letters: Tensor | None = None
) -> Tensor:
    """See ``reference.ngram_rows``."""
    rows = torch.empty(*tokens.shape, len(layout.blocks), dtype=torch.int32)
    options = _on_cpu(lengths), _on_cpu(letters), _on_cpu(admitted)
    _kernels().ngram_rows(tokens.contiguous(), *options, layout.blocks, layout.vocabulary, rows)
    return rows


def count_ngrams(
    tokens: Tensor,
    lengths: Tensor | None,
    layout: NgramLayout,
    first: int,
    seen: Tensor,
    counts: Tensor,
    letters: Tensor | None = None,
) -> None:
    """See ``reference.count_ngrams``."""
    options = _on_cpu(lengths), _on_cpu(letters)
    _kernels().count_ngrams(tokens.contiguous(), *options, layout.blocks, layout.vocabulary, first, seen, counts)


def occurrences(rows: Tensor, total: int) -> Tensor:
    """See ``reference.occurrences``."""
    counts = torch.empty_like(rows, memory_format=torch.contiguous_format)
    _kernels().occurrences(rows.contiguous(), torch.zeros(total, dtype=torch.int32), counts)
    return counts


def bag(rows: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """See ``reference.bag``."""
    if table.dtype != torch.float32:
        return reference.bag(rows, table, weights)
    sums = _empty(*rows.shape[:-1], table.shape[1])
    factors = None if weights is None else weights.float().contiguous().flatten(0, -2)
    _kernels().bag(rows.contiguous().flatten(0, -2), factors, *_plain(table), sums.view(-1, table.shape[1]))
    return sums


def bag_backward(grad: Tensor, rows: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """See ``reference.bag_backward``."""
    factors = None if weights is None else weights.float().contiguous()
    distinct, sums = _kernels().bag_backward(*_plain(grad, rows), factors)
    return distinct, sums


def update_rows_(
    table: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, grads: Tensor, step: AdamWStep
) -> None:
    """See ``reference.update_rows_``."""
    if table.dtype != torch.float32:
        reference.update_rows_(table, exp_avg, exp_avg_sq, rows, grads, step)
    else:
        _kernels().update_rows(table.detach(), exp_avg, exp_avg_sq, *_plain(rows, grads), step)


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """See ``reference.dropout``."""
    dropped = _like(values)
    _kernels().dropout(*_plain(values), p, seed, dropped)
    return dropped


def _kernels() -> ModuleType:
    assert _engine is not None, _unavailable
    if not _engine.shares_torch_threads:
        _engine.set_threads(torch.get_num_threads())
    return _engine


def _expand_rows(chain: Chain) -> Chain:
    """Return the chain with inputs for every token if it has heads, whose kernels know no table of rows."""
    if chain.heads is None or chain.row_ids is None:
        return chain
    return chain._replace(inputs=lookup(chain.row_ids, chain.inputs), row_ids=None)


def _arguments(chain: Chain) -> tuple[object, ...]:
    indices = _indices(chain.offsets, chain.lengths)
    return (*_plain(*chain[:6]), *indices, chain.residual, chain.ring, _on_cpu(chain.row_ids))


def _indices(offsets: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return offsets.contiguous(), _on_cpu(lengths)


def _on_cpu(numbers: Tensor | None) -> Tensor | None:
    return None if numbers is None else numbers.cpu().contiguous()


def _plain(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return contiguous tensors without autograd history; the kernels borrow their memory."""
    return tuple(tensor.detach().contiguous() for tensor in tensors)


def _like(tensor: Tensor) -> Tensor:
    return _empty(*tensor.shape)


def _empty(*shape: int) -> Tensor:
    """Return an uninitialized tensor; large ones come from the caching allocator, which saves the page faults."""
    if math.prod(shape) < _LARGE:
        return torch.empty(shape)
    tensor: Tensor = _kernels().empty(shape)
    return tensor

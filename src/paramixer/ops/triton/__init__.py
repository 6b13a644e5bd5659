"""The GPU backend: kernels in Triton for the operators, plain torch where a kernel would gain nothing.

This module is imported with the package and must not import Triton: the kernels are, when the first call needs them.
docs/gpu.md says which calls have kernels, and why the others have none.
"""

from __future__ import annotations

import importlib.util
import os

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.ops import reference
from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.chain import Chain, compute_dtype
from paramixer.ops.checks import past_end
from paramixer.ops.ngram_layout import NgramLayout

# The operators hand half precision over as it is; kernels read it, compute in float32 and write it.
takes_half = True

_MOST_ROWS = 2**30


def unavailable_reason() -> str | None:
    """Return why this backend cannot run in this process; None if it can."""
    if importlib.util.find_spec("triton") is None:
        return "the package triton is missing; install it with: pip install 'paramixer[gpu]'"
    if not torch.cuda.is_available() and not _is_interpreted():
        return "torch finds no GPU (TRITON_INTERPRET=1 runs the kernels slowly on the CPU, for tests)"
    return None


def unsupported_reason(values: Tensor) -> str | None:
    """Return why this backend cannot compute with such tensors; None if it can."""
    wanted = "cpu" if _is_interpreted() else "cuda"
    if values.device.type != wanted:
        what = (
            "with TRITON_INTERPRET=1 it serves tensors on the CPU" if wanted == "cpu" else "it serves tensors on a GPU"
        )
        return f"{what}, these are on {values.device}"
    if compute_dtype(values.dtype) != torch.float32:
        return f"it computes in float32, these are {values.dtype}"
    if values.dim() == 3 and values.shape[1] > _MOST_ROWS:
        return f"it takes sequences of up to {_MOST_ROWS} positions, these have {values.shape[1]}"
    return None


def link_mix(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """See ``reference.link_mix``."""
    from paramixer.ops.triton import single

    return single.link_mix(weights, values, offsets, lengths, ring)


def link_mix_backward(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """See ``reference.link_mix_backward``."""
    from paramixer.ops.triton import single

    return single.link_mix_backward(grad, weights, values, offsets, lengths, ring)


def paramix(chain: Chain, checkpoint_every: int) -> tuple[Tensor, Tensor]:
    """See ``reference.paramix``."""
    from paramixer.ops.triton.chain import run_forward

    return run_forward(chain, checkpoint_every)


def paramix_backward(grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor) -> tuple[Tensor, ...]:
    """See ``reference.paramix_backward``."""
    from paramixer.ops.triton.chain import run_backward

    dinputs, *others = run_backward(grad, chain, checkpoint_every, checkpoints)
    if chain.row_ids is not None:
        dinputs = lookup_backward(dinputs.flatten(0, 1), chain.row_ids.flatten(), chain.inputs.shape[0])
    return dinputs.to(chain.inputs.dtype), *others


def mlp(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """See ``reference.mlp``; torch's own products, which are as fast as a GPU allows at these widths."""
    out = F.gelu(_drop_past(inputs, lengths) @ w1 + b1) @ w2 + b2
    return _drop_past(out, lengths)


def mlp_backward(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, ...]:
    """See ``reference.mlp_backward``."""
    x = _drop_past(inputs, lengths).flatten(0, 1)
    upstream = _drop_past(grad, lengths).flatten(0, 1)
    before = x @ w1 + b1
    dbefore = torch.ops.aten.gelu_backward(upstream @ w2.T, before)
    dinputs = (dbefore @ w1.T).reshape(inputs.shape)
    return dinputs, x.T @ dbefore, dbefore.sum(0), F.gelu(before).T @ upstream, upstream.sum(0)


def lookup(ids: Tensor, table: Tensor) -> Tensor:
    """See ``reference.lookup``."""
    return reference.lookup(ids, table)


def lookup_backward(grad: Tensor, ids: Tensor, rows: int) -> Tensor:
    """See ``reference.lookup_backward``; by sorting the ids, not by atomic additions as ``index_add_`` does."""
    sums: Tensor = torch.ops.aten.embedding_dense_backward(grad.contiguous(), ids.contiguous(), rows, -1, False)
    return sums


def ngram_rows(
    tokens: Tensor, lengths: Tensor | None, layout: NgramLayout, admitted: Tensor | None, letters: Tensor | None = None
) -> Tensor:
    """See ``reference.ngram_rows``."""
    return reference.ngram_rows(tokens, lengths, layout, admitted, letters)


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
    reference.count_ngrams(tokens, lengths, layout, first, seen, counts, letters)


def occurrences(rows: Tensor, total: int) -> Tensor:
    """See ``reference.occurrences``."""
    return reference.occurrences(rows, total)


def bag(rows: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """See ``reference.bag``."""
    return reference.bag(rows, table, weights)


def bag_backward(grad: Tensor, rows: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """See ``reference.bag_backward``; the sums by sorting, so that they repeat to the bit."""
    token, order = (rows >= 0).nonzero().unbind(-1)
    distinct, number = torch.unique(rows[token, order].long(), return_inverse=True)
    grads = grad[token] if weights is None else grad[token] * weights[token, order][:, None].to(grad.dtype)
    return distinct, lookup_backward(grads, number, len(distinct))


def update_rows_(
    table: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, grads: Tensor, step: AdamWStep
) -> None:
    """See ``reference.update_rows_``."""
    reference.update_rows_(table, exp_avg, exp_avg_sq, rows, grads, step)


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """See ``reference.dropout``."""
    from paramixer.ops.triton import single

    return single.dropout(values, p, seed)


def _drop_past(tensor: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the tensor with zeros past the lengths, whatever stood there."""
    if lengths is None:
        return tensor
    return tensor.masked_fill(past_end(lengths.to(tensor.device), tensor.shape[1])[..., None], 0)


def _is_interpreted() -> bool:
    # Asked for without an import of Triton, which reads the same variable.
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y")

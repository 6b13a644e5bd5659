"""The functions that users call: link_mix, paramix and mlp check their arguments and call the custom ops."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paramixer.ops.chain import Chain, count_heads
from paramixer.ops.checks import (
    as_lengths,
    as_offsets,
    as_row_ids,
    check_checkpoint_every,
    check_forward_mode,
    check_head_widths,
    check_residual,
    check_ring,
    check_tensors,
    is_autocasting,
)
from paramixer.ops.torch_ops import link_mix_op, mlp_op, paramix_op


def link_mix(
    weights: Tensor,
    values: Tensor,
    offsets: Tensor | Sequence[int],
    lengths: Tensor | Sequence[int] | None = None,
    ring: bool = True,
) -> Tensor:
    """Mix values along links: ``out[b, i] = sum_k weights[b, i, k] * values[b, (i + offsets[k]) % length]``.

    With heads, head j mixes the j-th of ``heads`` equal slices of the channels with weights of its own.

    Args:
        weights: ``[batch, length, links]``, the entries of one sparse factor, row by row; with heads
            ``[batch, length, heads, links]``.
        values: ``[batch, length, channels]``.
        offsets: ``[links]``, whole numbers of any sign and size; links that coincide add. With heads ``[links]`` for
            all of them, or ``[heads, links]``.
        lengths: ``[batch]``, 0 to length: each sequence has a ring of its own length. Rows past it may hold NaN, affect
            no output and no gradient, and are zero in the output.
        ring: with False a link that leaves the sequence contributes nothing; with offsets <= 0 the mix is then causal.

    Returns:
        ``[batch, length, channels]`` in the dtype of values.
    """
    weights, values = _autocast(weights, values)
    heads = weights.shape[2] if isinstance(weights, Tensor) and weights.dim() == 4 else None
    axes = "batch length links" if heads is None else "batch length heads links"
    check_tensors("link_mix", {"values": (values, "batch length channels"), "weights": (weights, axes)})
    if heads is not None:
        check_head_widths("link_mix", heads, values)
    check_forward_mode("link_mix", weights, values)
    check_ring("link_mix", ring)
    mixed: Tensor = link_mix_op(
        weights,
        values,
        as_offsets("link_mix", offsets, weights.shape[-1:], "links", heads),
        as_lengths("link_mix", lengths, values.shape[0]),
        ring,
    )
    return mixed


def paramix(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor | Sequence[Sequence[int]],
    residual: str = "factor",
    lengths: Tensor | Sequence[int] | None = None,
    ring: bool = True,
    checkpoint_every: int = 1,
    row_ids: Tensor | None = None,
) -> Tensor:
    """Apply the whole chain of factors; an MLP computes each factor's entries from the inputs.

    For every factor m: ``weights = gelu(inputs @ w1[m] + b1[m]) @ w2[m] + b2[m]``, then
    ``values = link_mix(weights, values, offsets[m])`` plus the residual.

    With heads, each head is a chain of its own for its slice of the channels. All parameters then have a first axis
    ``heads``; so may the offsets, otherwise they are those of every head. Inputs of width ``inputs`` are read by every
    head; of ``heads * inputs``, each head reads its own slice. The result is that of one call per head, in one kernel.

    Args:
        inputs: ``[batch, length, inputs]``, what the MLPs read; with row_ids a table ``[rows, inputs]``.
        values: ``[batch, length, channels]``, what is mixed; with heads each mixes an equal slice of the channels.
        w1: ``[factors, inputs, hidden]``.
        b1: ``[factors, hidden]``.
        w2: ``[factors, hidden, links]``.
        b2: ``[factors, links]``.
        offsets: ``[factors, links]``, whole numbers.
        residual: what each factor adds to its mix: "factor" its own input, "block" the chain's first values, "none"
            nothing.
        lengths: as in :func:`link_mix`.
        ring: as in :func:`link_mix`.
        checkpoint_every: the forward pass stores the input of every checkpoint_every-th factor; the backward pass
            recomputes the others. 1 is fastest, larger numbers save memory.
        row_ids: ``[batch, length]``, the table row of each position. The result equals that of the inputs
            ``table[row_ids]``, but the links of a row are computed once, however many positions share it. With heads
            they are computed for every position.

    Returns:
        ``[batch, length, channels]`` in the dtype of values.
    """
    chain = build_chain("paramix", inputs, values, w1, b1, w2, b2, offsets, residual, lengths, ring, row_ids)
    check_checkpoint_every("paramix", checkpoint_every)
    differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in chain[:6])
    mixed: Tensor
    mixed, _ = paramix_op(*chain, checkpoint_every if differentiable else 0)
    return mixed


def mlp(
    inputs: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    lengths: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """Return ``gelu(inputs @ w1 + b1) @ w2 + b2`` for every token, without storing the hidden layer.

    Args:
        inputs: ``[batch, length, inputs]``.
        w1: ``[inputs, hidden]``.
        b1: ``[hidden]``.
        w2: ``[hidden, outputs]``.
        b2: ``[outputs]``.
        lengths: as in :func:`link_mix`.

    Returns:
        ``[batch, length, outputs]`` in the dtype of inputs.
    """
    inputs, w1, b1, w2, b2 = _autocast(inputs, w1, b1, w2, b2)
    shapes = {
        "inputs": (inputs, "batch length inputs"),
        "w1": (w1, "inputs hidden"),
        "b1": (b1, "hidden"),
        "w2": (w2, "hidden outputs"),
        "b2": (b2, "outputs"),
    }
    check_tensors("mlp", shapes)
    check_forward_mode("mlp", inputs, w1, b1, w2, b2)
    out: Tensor = mlp_op(inputs, w1, b1, w2, b2, as_lengths("mlp", lengths, inputs.shape[0]))
    return out


def build_chain(
    operator: str,
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor | Sequence[Sequence[int]],
    residual: str,
    lengths: Tensor | Sequence[int] | None,
    ring: bool,
    row_ids: Tensor | None = None,
) -> Chain:
    """Check the arguments of :func:`paramix` and return them as the custom ops take them."""
    inputs, values, w1, b1, w2, b2 = _autocast(inputs, values, w1, b1, w2, b2)
    heads = count_heads(w1) if isinstance(w1, Tensor) else None
    # With heads the inputs' width is that of w1 or a multiple, so the axis has a name of its own.
    each, width = ("", "inputs") if heads is None else ("heads ", "width")
    shapes = {
        "values": (values, "batch length channels"),
        "inputs": (inputs, f"batch length {width}" if row_ids is None else f"rows {width}"),
        "w1": (w1, f"{each}factors inputs hidden"),
        "b1": (b1, f"{each}factors hidden"),
        "w2": (w2, f"{each}factors hidden links"),
        "b2": (b2, f"{each}factors links"),
    }
    check_tensors(operator, shapes)
    if heads is not None:
        check_head_widths(operator, heads, values, inputs, w1.shape[2])
    check_forward_mode(operator, inputs, values, w1, b1, w2, b2)
    check_residual(operator, residual)
    check_ring(operator, ring)
    table = as_offsets(operator, offsets, b2.shape[-2:], "factors, links", heads)
    counts = as_lengths(operator, lengths, values.shape[0])
    if row_ids is not None:
        row_ids = as_row_ids(operator, row_ids, values)
    return Chain(inputs, values, w1, b1, w2, b2, table, counts, residual, ring, row_ids)


def _autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast float32 and half tensors to autocast's dtype if it is active, as torch's linear layers do."""
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        return tensors
    if not is_autocasting(tensors[0]):
        return tensors
    dtype = torch.get_autocast_dtype(tensors[0].device.type)
    return tuple(
        tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
        for tensor in tensors
    )

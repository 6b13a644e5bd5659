"""The custom ops in torch's own operators, so that an exported graph needs nothing of this package.

The results are those of ``paramixer.ops.reference``. Unlike there, nothing loops over sequences and no shape decides
what is traced: one graph serves every batch size and length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.ops.checks import past_end
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.reference import number_ngrams, number_words


def lowered_ops() -> dict[Any, Callable[..., Any]]:
    """Return what replaces each operator, as ``ExportedProgram.run_decompositions`` takes it."""
    ops = torch.ops.paramixer
    return {
        ops.paramix.default: paramix,
        ops.mlp.default: mlp,
        ops.lookup.default: lookup,
        ops.ngram_rows.default: ngram_rows,
        ops.occurrences.default: occurrences,
        torch.ops.aten.unfold.default: unfold,
        torch.ops.aten.sum.dim_IntList: sum_positions,
        torch.ops.aten.linalg_vector_norm.default: norm_of_positions,
    }


def paramix(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    residual: str,
    ring: bool,
    row_ids: Tensor | None,
    checkpoint_every: int,
) -> tuple[Tensor, Tensor]:
    """Return the output of a chain, and no checkpoints. A chain without heads is one of a single head."""
    if row_ids is not None:
        inputs = inputs[row_ids]
    if w1.dim() == 3:
        w1, b1, w2, b2, offsets = w1[None], b1[None], w2[None], b2[None], offsets[None]
    heads, factors, width, _ = w1.shape
    batch, length, channels = values.shape
    # [batch, heads, length, channels of a head]; inputs have 1 head if all heads read the same.
    first = values.reshape(batch, length, heads, channels // heads).transpose(1, 2)
    inputs = inputs.reshape(batch, length, inputs.shape[2] // width, width).transpose(1, 2)
    ends = values.new_full((batch,), length, dtype=torch.int64) if lengths is None else lengths
    past = past_end(ends, length)[:, None, :, None]
    mixed = first = first.masked_fill(past, 0)
    for m in range(factors):
        weights = F.gelu(inputs @ w1[:, m] + b1[:, m, None]) @ w2[:, m] + b2[:, m, None]
        before = mixed
        mixed = _mix(weights, before, offsets[:, m], ends, ring)
        if residual != "none":
            mixed = mixed + (before if residual == "factor" else first)
        mixed = mixed.masked_fill(past, 0)
    return mixed.transpose(1, 2).reshape(batch, length, channels), values.new_empty(0)


def mlp(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """Return ``gelu(inputs @ w1 + b1) @ w2 + b2``; rows past the lengths are zero."""
    out = F.gelu(inputs @ w1 + b1) @ w2 + b2
    return out if lengths is None else out.masked_fill(past_end(lengths, inputs.shape[1])[..., None], 0)


def lookup(ids: Tensor, table: Tensor, pad: int | None) -> Tensor:
    """Return the table's rows with these ids."""
    return F.embedding(ids, table)


def ngram_rows(
    tokens: Tensor,
    lengths: Tensor | None,
    letters: Tensor | None,
    admitted: Tensor | None,
    orders: Sequence[int],
    vocabulary: int,
    rows: int,
    words: int,
) -> Tensor:
    """Return the row of each position's n-gram of each order, int32 ``[batch, length, orders]``; -1 for none."""
    length = tokens.shape[1]
    places = torch.arange(length, device=tokens.device)
    past = None if lengths is None else past_end(lengths, length)
    if past is not None:
        tokens = tokens.masked_fill(past, 0)
    columns = []
    layout = NgramLayout(tuple(orders), vocabulary, rows, words)
    for block in layout.blocks[: len(orders)]:
        padded = F.pad(tokens, (block.order - 1, 0))
        ngrams = [padded.narrow(1, place, length) for place in range(block.order)]
        columns.append(number_ngrams(ngrams, block, vocabulary).masked_fill(places < block.order - 1, -1))
    found = torch.stack(columns, -1)
    if letters is not None:
        inside = letters[tokens]
        inside = inside if past is None else inside.masked_fill(past, 0)
        found = torch.cat([found, number_words(inside, layout).long()], -1)
    if past is not None:
        found = found.masked_fill(past[..., None], -1)
    if admitted is not None:
        # Without a minus among the indices: the flag of the last row would be read for -1.
        found = found.masked_fill(admitted[found.clamp(min=0)] == 0, -1)
    return found.int()


def occurrences(rows: Tensor, total: int) -> Tensor:
    """Return how often rows occur in their sequence, int32; 0 where one occurred before."""
    length = rows.shape[1]
    # Equal rows in the order of their places, whether or not a runtime's sort is stable.
    keys = rows.long() * length + torch.arange(length, device=rows.device)[:, None]
    places = keys.sort(dim=1).indices
    ordered = rows.long().gather(1, places)
    # No row is -2.
    before = F.pad(ordered, (0, 0, 1, 0), value=-2).narrow(1, 0, length)
    first = (ordered != before).long()
    group = first.cumsum(1) - 1
    sizes = torch.zeros_like(ordered).scatter_add(1, group, torch.ones_like(ordered))
    counts = torch.zeros_like(ordered).scatter(1, places, sizes.gather(1, group) * first)
    return counts.masked_fill(rows < 0, 0).int()


def unfold(values: Tensor, dimension: int, size: int, step: int) -> Any:
    """Return windows of ``size`` along a dimension as a last axis; ONNX's own translation needs a fixed length."""
    if step != 1:
        return NotImplemented
    count = values.shape[dimension] - size + 1
    return torch.stack([values.narrow(dimension, start, count) for start in range(size)], -1)


def _mix(weights: Tensor, values: Tensor, offsets: Tensor, ends: Tensor, ring: bool) -> Tensor:
    """Return one factor's mix of values ``[batch, heads, length, channels]`` with offsets ``[heads, links]``.

    As few operators for each link as there can be: links times factors of them make the graph.
    """
    batch, heads, length, channels = values.shape
    places = torch.arange(length, device=values.device)
    # An empty sequence has no row that is read; a remainder by zero ends the process in some runtimes.
    limits = ends.clamp(min=1)[:, None, None]
    # [links, batch, heads, length]
    neighbors = places + offsets.T[:, None, :, None]
    weights = weights.permute(3, 0, 1, 2)
    if ring:
        neighbors = torch.remainder(neighbors, limits)
    else:
        weights = weights.masked_fill((neighbors < 0) | (neighbors >= limits), 0)
        neighbors = neighbors.clamp(min=0).minimum(limits - 1)
    starts = (torch.arange(batch * heads, device=values.device) * length).reshape(batch, heads, 1)
    rows = (neighbors + starts).reshape(-1, batch * heads * length)
    table = values.reshape(-1, channels)
    shares = weights.reshape(-1, batch * heads * length, 1)
    mixed = shares[0] * table.index_select(0, rows[0])
    for k in range(1, offsets.shape[1]):
        mixed = mixed + shares[k] * table.index_select(0, rows[k])
    return mixed.reshape(batch, heads, length, channels)


def sum_positions(values: Tensor, dims: Sequence[int] | None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return sums over positions, added up in double precision: runtimes add one after the other, torch in pairs."""
    if values.dtype != torch.float32 or not _are_positions(values, dims):
        return NotImplemented
    return values.double().sum(list(dims or ()), keepdim).to(dtype or values.dtype)


def norm_of_positions(
    values: Tensor, order: float = 2, dims: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return Euclidean norms over positions, added up in double precision."""
    if values.dtype != torch.float32 or order != 2 or not _are_positions(values, dims):
        return NotImplemented
    return values.double().square().sum(list(dims or ()), keepdim).sqrt().to(dtype or values.dtype)


def _are_positions(values: Tensor, dims: Sequence[int] | None) -> bool:
    """Whether the number of summands depends on the length of the sequences."""
    return any(not isinstance(values.shape[dim], int) for dim in dims or ())

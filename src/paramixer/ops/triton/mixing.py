"""One factor with stored weights: ``link_mix``, its gradients, and the gradient of the values within a chain."""

from __future__ import annotations

import triton
import triton.language as tl

from paramixer.ops.triton.tiles import count_rows, follow_link, load_rows, locate_tile, store_rows, value_rows


@triton.jit
def weight_places(
    sequence, head, rows, k, N, HEADS: tl.constexpr, K: tl.constexpr, BY_LINK: tl.constexpr
):  # fmt: skip
    """Return where the weights of link k lie: in ``[batch, heads, K, length]`` or in ``[batch, length, heads, K]``."""
    if BY_LINK:
        return ((sequence * HEADS + head) * K + k) * N + rows
    return ((sequence * N + rows) * HEADS + head) * K + k


@triton.jit(do_not_specialize=["N", "factor"])
def mix_stored(
    weights, values, residual, passed, mixed, shifts, lengths, N, factor,
    HEADS: tl.constexpr, M: tl.constexpr, K: tl.constexpr, C: tl.constexpr, CP: tl.constexpr,
    TRANSPOSED: tl.constexpr, BY_LINK: tl.constexpr, HAS_LENGTHS: tl.constexpr, RING: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr, PASSES: tl.constexpr, VALUES_BY_HEAD: tl.constexpr, MIXED_BY_HEAD: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Write ``mixed = W @ values``, or with TRANSPOSED ``W.T @ values``: both gather, nothing is scattered.

    HAS_RESIDUAL adds the tile's rows of ``residual``, a tensor in the layout of values. PASSES adds them to the float32
    tensor ``passed`` instead, which holds what reaches a chain's first values past all factors.
    """
    sequence, head, start = locate_tile(N, HEADS, TILE)
    length = count_rows(lengths, sequence, N, HAS_LENGTHS)
    rows = start + tl.arange(0, TILE)
    inside = rows < N
    out = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, MIXED_BY_HEAD)
    total = tl.zeros([TILE, CP], dtype=tl.float32)
    if start >= length:
        store_rows(mixed, out, inside, total, C, CP)
        return
    valid = rows < length
    shifts += (head * M + factor) * K
    if HAS_LENGTHS:
        shifts += sequence * (HEADS * M * K)
    own = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, VALUES_BY_HEAD)
    if HAS_RESIDUAL:
        total = load_rows(residual, own, valid, C, CP)
    if PASSES:
        kept = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, False)
        grown = load_rows(passed, kept, valid, C, CP) + load_rows(residual, own, valid, C, CP)
        store_rows(passed, kept, valid, grown, C, CP)
    for k in range(K):
        shift = tl.load(shifts + k)
        if TRANSPOSED:
            shift = -shift
        neighbors, exist = follow_link(rows, shift, length, RING)
        weight_rows = neighbors if TRANSPOSED else rows
        places = weight_places(sequence, head, weight_rows.to(tl.int64), k, N, HEADS, K, BY_LINK)
        weight = tl.load(weights + places, mask=exist, other=0.0).to(tl.float32)
        there = value_rows(sequence, head, neighbors.to(tl.int64), N, HEADS, C, VALUES_BY_HEAD)
        total += weight[:, None] * load_rows(values, there, exist, C, CP)
    store_rows(mixed, out, inside, tl.where(valid[:, None], total, 0.0), C, CP)


@triton.jit(do_not_specialize=["N"])
def weight_gradients(
    grad, values, dweights, shifts, lengths, N,
    HEADS: tl.constexpr, K: tl.constexpr, C: tl.constexpr, CP: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, RING: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write ``dweights[i, k] = grad[i] . values[i + shift[k]]``; zero past a length."""
    sequence, head, start = locate_tile(N, HEADS, TILE)
    length = count_rows(lengths, sequence, N, HAS_LENGTHS)
    rows = start + tl.arange(0, TILE)
    inside = rows < N
    if HAS_LENGTHS:
        shifts += sequence * (HEADS * K)
    own = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, False)
    upstream = load_rows(grad, own, rows < length, C, CP)
    for k in range(K):
        neighbors, exist = follow_link(rows, tl.load(shifts + head * K + k), length, RING)
        there = value_rows(sequence, head, neighbors.to(tl.int64), N, HEADS, C, False)
        slope = tl.sum(upstream * load_rows(values, there, exist, C, CP), 1)
        places = weight_places(sequence, head, rows.to(tl.int64), k, N, HEADS, K, False)
        slope = tl.where(exist, slope, 0.0)
        tl.store(dweights + places, slope.to(dweights.dtype.element_ty), mask=inside)

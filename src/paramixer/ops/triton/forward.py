"""The forward pass of one factor: a tile of tokens goes through the link MLP and out through the mix, in registers."""

from __future__ import annotations

import triton
import triton.language as tl

from paramixer.ops.triton.tiles import (
    count_rows,
    first_layer,
    follow_link,
    gelu,
    input_rows,
    link_weight,
    load_rows,
    locate_tile,
    store_rows,
    value_rows,
)


@triton.jit(do_not_specialize=["N", "factor"])
def factor_forward(
    inputs, row_ids, values, residual, mixed, w1, b1, w2, b2, shifts, lengths, N, factor,
    HEADS: tl.constexpr, M: tl.constexpr, E: tl.constexpr, H: tl.constexpr, K: tl.constexpr, C: tl.constexpr,
    HP: tl.constexpr, CP: tl.constexpr, EB: tl.constexpr,
    SHARED: tl.constexpr, HAS_ROW_IDS: tl.constexpr, HAS_LENGTHS: tl.constexpr, RING: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr, VALUES_BY_HEAD: tl.constexpr, RESIDUAL_BY_HEAD: tl.constexpr,
    MIXED_BY_HEAD: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write ``mixed[i] = sum_k weight[i, k] * values[i + shift[k]] + residual[i]``; rows past a length become zero."""
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
    parameters = head * M + factor
    starts = input_rows(row_ids, sequence, head, rows.to(tl.int64), valid, N, HEADS, E, SHARED, HAS_ROW_IDS)
    before = first_layer(
        inputs, starts, valid, w1 + parameters * (E * H), b1 + parameters * H, 0, E, H, HP, EB, TILE, PRECISION
    )
    hidden = gelu(before)
    units = tl.arange(0, HP)
    w2 += parameters * (K * H)
    b2 += parameters * K
    shifts += parameters * K
    if HAS_LENGTHS:
        shifts += sequence * (HEADS * M * K)
    if HAS_RESIDUAL:
        own = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, RESIDUAL_BY_HEAD)
        total = load_rows(residual, own, valid, C, CP)
    for k in range(K):
        weight = link_weight(hidden, units, w2, b2, k, H)
        neighbors, exist = follow_link(rows, tl.load(shifts + k), length, RING)
        there = value_rows(sequence, head, neighbors.to(tl.int64), N, HEADS, C, VALUES_BY_HEAD)
        # Where a link leaves an open sequence, or the tile the sequence, not even a NaN weight may contribute.
        total += tl.where(exist, weight, 0.0)[:, None] * load_rows(values, there, exist, C, CP)
    store_rows(mixed, out, inside, tl.where(valid[:, None], total, 0.0), C, CP)

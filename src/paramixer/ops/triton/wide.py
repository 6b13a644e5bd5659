"""The two products of the backward pass of a wide first layer, block by block: all of it would not fit in registers."""

from __future__ import annotations

import triton
import triton.language as tl

from paramixer.ops.triton.tiles import (
    add_rows,
    count_rows,
    input_rows,
    load_transposed,
    locate_tile,
    store_transposed,
)


@triton.jit(do_not_specialize=["N", "factor"])
def input_backward(
    dhidden, dinputs, w1, lengths, N, factor,
    HEADS: tl.constexpr, ALL_HEADS: tl.constexpr, M: tl.constexpr, E: tl.constexpr, H: tl.constexpr,
    HB: tl.constexpr, EB: tl.constexpr, SHARED: tl.constexpr, HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Add ``dhidden @ w1.T`` to ``dinputs``; inputs that all heads read get the sum over them, in one program."""
    sequence, own_head, start = locate_tile(N, HEADS, TILE)
    length = count_rows(lengths, sequence, N, HAS_LENGTHS)
    if start >= length:
        return
    rows = (start + tl.arange(0, TILE)).to(tl.int64)
    valid = rows < length
    heads: tl.constexpr = ALL_HEADS if SHARED else 1
    for block in range(0, E, EB):
        columns = block + tl.arange(0, EB)
        total = tl.zeros([TILE, EB], dtype=tl.float32)
        for number in range(heads):
            head = number if SHARED else own_head
            w1_here = w1 + (head * M + factor) * (E * H)
            here = dhidden + ((sequence * ALL_HEADS + head) * N + rows) * H
            for first in range(0, H, HB):
                units = first + tl.arange(0, HB)
                mask = valid[:, None] & (units < H)[None, :]
                slopes = tl.load(here[:, None] + units[None, :], mask=mask, other=0.0)
                total = tl.dot(slopes, load_transposed(w1_here, units, columns, E, H), total, input_precision=PRECISION)
        there = input_rows(None, sequence, own_head, rows, valid, N, ALL_HEADS, E, SHARED, False)
        add_rows(dinputs, there, valid, total, columns, E)


@triton.jit(do_not_specialize=["batch", "N", "programs"])
def first_layer_backward(
    inputs, row_ids, dhidden, partial, lengths, batch, N, programs,
    HEADS: tl.constexpr, E: tl.constexpr, H: tl.constexpr, K: tl.constexpr, HB: tl.constexpr, EB: tl.constexpr,
    SHARED: tl.constexpr, HAS_ROW_IDS: tl.constexpr, HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Write dw1, ``inputs.T @ dhidden``, into ``partial[program, head]``: every program sums its tiles in order."""
    program, head = tl.program_id(0), tl.program_id(1)
    tiles = tl.cdiv(N, TILE)
    blocks: tl.constexpr = (H + HB - 1) // HB
    passes: tl.constexpr = blocks * ((E + EB - 1) // EB)
    size: tl.constexpr = E * H + H + K * H + K
    for number in range(passes):
        units = (number % blocks) * HB + tl.arange(0, HB)
        columns = (number // blocks) * EB + tl.arange(0, EB)
        dw1 = tl.zeros([HB, EB], dtype=tl.float32)
        for tile in range(program, batch * tiles, programs):
            sequence = (tile // tiles).to(tl.int64)
            start = (tile % tiles) * TILE
            length = count_rows(lengths, sequence, N, HAS_LENGTHS)
            if start < length:
                rows = (start + tl.arange(0, TILE)).to(tl.int64)
                valid = rows < length
                starts = input_rows(row_ids, sequence, head, rows, valid, N, HEADS, E, SHARED, HAS_ROW_IDS)
                mask = valid[:, None] & (columns < E)[None, :]
                x = tl.load(inputs + starts[:, None] + columns[None, :], mask=mask, other=0.0).to(tl.float32)
                here = dhidden + ((sequence * HEADS + head) * N + rows) * H
                slopes = tl.load(here[:, None] + units[None, :], mask=valid[:, None] & (units < H)[None, :], other=0.0)
                dw1 = tl.dot(tl.trans(slopes), x, dw1, input_precision=PRECISION)
        sums = partial + (program * HEADS + head).to(tl.int64) * size
        store_transposed(sums, dw1, units, columns, E, H)

"""The backward pass of one factor, without atomics, in three kernels.

1. ``link_backward``: a tile computes its links again and writes them for the second kernel, and their gradients,
   dot products of the upstream gradient with the neighbors, for the third.
2. ``mixing.mix_stored``, transposed: the gradient of the values, a gather of the upstream gradient.
3. ``mlp_backward``: a fixed number of programs go through the tiles in a fixed order and sum the gradients of the
   parameters; a second pass adds the sums of the programs. The gradient of the inputs is added where it lies.
   Where link inputs are wide, both products of the first layer are left to the kernels in ``wide``.

Links and their gradients are stored for one factor at a time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from paramixer.ops.triton.mixing import weight_places
from paramixer.ops.triton.tiles import (
    add_rows,
    count_rows,
    first_layer,
    follow_link,
    gelu,
    gelu_slope,
    input_rows,
    link_weight,
    load_rows,
    load_transposed,
    locate_tile,
    store_transposed,
    value_rows,
)


@triton.jit(do_not_specialize=["N", "factor"])
def link_backward(
    grad, inputs, row_ids, values, weights, dweights, w1, b1, w2, b2, shifts, lengths, N, factor,
    HEADS: tl.constexpr, M: tl.constexpr, E: tl.constexpr, H: tl.constexpr, K: tl.constexpr, C: tl.constexpr,
    HP: tl.constexpr, CP: tl.constexpr, EB: tl.constexpr,
    SHARED: tl.constexpr, HAS_ROW_IDS: tl.constexpr, HAS_LENGTHS: tl.constexpr, RING: tl.constexpr,
    GRAD_BY_HEAD: tl.constexpr, VALUES_BY_HEAD: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the weights of all links and their gradients, both ``[batch, heads, K, length]``, up to each length."""
    sequence, head, start = locate_tile(N, HEADS, TILE)
    length = count_rows(lengths, sequence, N, HAS_LENGTHS)
    if start >= length:
        return
    rows = start + tl.arange(0, TILE)
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
    own = value_rows(sequence, head, rows.to(tl.int64), N, HEADS, C, GRAD_BY_HEAD)
    upstream = load_rows(grad, own, valid, C, CP)
    for k in range(K):
        places = weight_places(sequence, head, rows.to(tl.int64), k, N, HEADS, K, True)
        tl.store(weights + places, link_weight(hidden, units, w2, b2, k, H), mask=valid)
        neighbors, exist = follow_link(rows, tl.load(shifts + k), length, RING)
        there = value_rows(sequence, head, neighbors.to(tl.int64), N, HEADS, C, VALUES_BY_HEAD)
        slope = tl.sum(upstream * load_rows(values, there, exist, C, CP), 1)
        tl.store(dweights + places, tl.where(exist, slope, 0.0), mask=valid)


@triton.jit(do_not_specialize=["batch", "N", "factor", "programs"])
def mlp_backward(
    inputs, row_ids, dweights, dinputs, dhidden, partial, w1, b1, w2, lengths, batch, N, factor, programs,
    HEADS: tl.constexpr, M: tl.constexpr, E: tl.constexpr, H: tl.constexpr, K: tl.constexpr,
    KP: tl.constexpr, HB: tl.constexpr, EB: tl.constexpr, WIDE: tl.constexpr,
    SHARED: tl.constexpr, HAS_ROW_IDS: tl.constexpr, HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Add to ``dinputs`` and write ``partial[program, head]``: dw1, db1, dw2 ``[K, H]`` and db2 of one factor.

    A program goes through all its tiles for HB hidden units of one head, then for the next ones. It alone adds to the
    gradient of its tiles' inputs, also where all heads read the same inputs. With WIDE, E is more than EB: then the
    gradient before GELU is written to ``dhidden``, ``[batch, heads, length, H]``, instead of dw1 and ``dinputs``.
    """
    program = tl.program_id(0)
    tiles = tl.cdiv(N, TILE)
    blocks: tl.constexpr = (H + HB - 1) // HB
    passes: tl.constexpr = blocks * HEADS if SHARED else blocks
    size: tl.constexpr = E * H + H + K * H + K
    columns = tl.arange(0, EB)
    links = tl.arange(0, KP)
    for number in range(passes):
        head = number // blocks if SHARED else tl.program_id(1)
        first = (number % blocks) * HB
        units = first + tl.arange(0, HB)
        parameters = head * M + factor
        # Transposed: the wider side of a product belongs along the lanes of a warp.
        dw1 = tl.zeros([HB, EB], dtype=tl.float32)
        dw2 = tl.zeros([KP, HB], dtype=tl.float32)
        db1 = tl.zeros([HB], dtype=tl.float32)
        db2 = tl.zeros([KP], dtype=tl.float32)
        for tile in range(program, batch * tiles, programs):
            sequence = (tile // tiles).to(tl.int64)
            start = (tile % tiles) * TILE
            length = count_rows(lengths, sequence, N, HAS_LENGTHS)
            if start < length:
                rows = start + tl.arange(0, TILE)
                valid = rows < length
                # Zero, which the compiler does not know: otherwise it would load all parameters once, before the loop
                # over tiles, and have no registers left for anything else.
                again = tl.minimum(start, 0)
                w1_here, w2_here = w1 + parameters * (E * H) + again, w2 + parameters * (K * H) + again
                starts = input_rows(row_ids, sequence, head, rows.to(tl.int64), valid, N, HEADS, E, SHARED, HAS_ROW_IDS)
                before = first_layer(
                    inputs, starts, valid, w1_here, b1 + parameters * H, first, E, H, HB, EB, TILE, PRECISION
                )
                places = weight_places(sequence, head, rows.to(tl.int64)[:, None], links[None, :], N, HEADS, K, True)
                slopes = tl.load(dweights + places, mask=valid[:, None] & (links < K)[None, :], other=0.0)
                # Zero in rows past the end and in units that are padding: there Inf * 0 would be NaN, and spread.
                real = valid[:, None] & (units < H)[None, :]
                hidden = tl.where(real, gelu(before), 0.0)
                dw2 = tl.dot(tl.trans(slopes), hidden, dw2, input_precision=PRECISION)
                db2 += tl.sum(slopes, 0)
                second = tl.load(
                    w2_here + links[:, None] * H + units[None, :],
                    mask=(links < K)[:, None] & (units < H)[None, :],
                    other=0.0,
                ).to(tl.float32)
                dbefore = tl.dot(slopes, second, input_precision=PRECISION) * gelu_slope(before)
                dbefore = tl.where(real, dbefore, 0.0)
                db1 += tl.sum(dbefore, 0)
                if WIDE:
                    place = dhidden + ((sequence * HEADS + head) * N + rows.to(tl.int64))[:, None] * H + units[None, :]
                    tl.store(place, dbefore, mask=real)
                else:
                    x = load_rows(inputs, starts, valid, E, EB)
                    dw1 = tl.dot(tl.trans(dbefore), x, dw1, input_precision=PRECISION)
                    transposed = load_transposed(w1_here, units, columns, E, H)
                    dx = tl.dot(dbefore, transposed, input_precision=PRECISION)
                    # The gradient of a token's inputs, also where row_ids name rows of a table.
                    there = input_rows(row_ids, sequence, head, rows.to(tl.int64), valid, N, HEADS, E, SHARED, False)
                    add_rows(dinputs, there, valid, dx, columns, E)
        sums = partial + (program * HEADS + head).to(tl.int64) * size
        real_units = units < H
        if not WIDE:
            store_transposed(sums, dw1, units, columns, E, H)
        tl.store(sums + E * H + units, db1, mask=real_units)
        sums += E * H + H
        tl.store(sums + links[:, None] * H + units[None, :], dw2, mask=(links < K)[:, None] & real_units[None, :])
        if first == 0:
            tl.store(sums + K * H + links, db2, mask=links < K)
        # The next pass adds to the same rows of dinputs, perhaps by other threads.
        tl.debug_barrier()

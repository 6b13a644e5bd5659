"""What the kernels have in common: where a program's tile lies, the hidden layer of its links, its neighbors.

Everything is computed in float32, whatever the tensors hold. Widths are constants of a compiled kernel, rounded up to
powers of two with masks; the batch size and the length are not, so that a new length needs no new kernel. Addresses are
64-bit, so that tensors may be of any size.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def locate_tile(N, HEADS: tl.constexpr, TILE: tl.constexpr):
    """Return sequence, head and rows of this program's tile; the heads of a tile are neighbors and share its inputs."""
    program = tl.program_id(0)
    tiles = tl.cdiv(N, TILE)
    head = program % HEADS
    tile = (program // HEADS) % tiles
    sequence = program // HEADS // tiles
    return sequence.to(tl.int64), head, tile * TILE


@triton.jit
def count_rows(lengths, sequence, N, HAS_LENGTHS: tl.constexpr):
    """Return the length of a sequence: never more than the tensors have, whatever stands in ``lengths``."""
    length = N
    if HAS_LENGTHS:
        length = tl.minimum(tl.load(lengths + sequence), N).to(tl.int32)
    return length


@triton.jit
def value_rows(sequence, head, rows, N, HEADS: tl.constexpr, C: tl.constexpr, HEAD_MAJOR: tl.constexpr):
    """Return where rows of a head start: in ``[batch, heads, length, C]`` or in ``[batch, length, heads * C]``."""
    if HEAD_MAJOR:
        return ((sequence * HEADS + head) * N + rows) * C
    return (sequence * N + rows) * (HEADS * C) + head * C


@triton.jit
def input_rows(
    row_ids, sequence, head, rows, valid, N, HEADS: tl.constexpr, E: tl.constexpr, SHARED: tl.constexpr,
    HAS_ROW_IDS: tl.constexpr,
):  # fmt: skip
    """Return where the link inputs of rows start, in ``[batch, length, width]`` or in a table ``[rows, width]``."""
    token = sequence * N + rows
    if HAS_ROW_IDS:
        token = tl.load(row_ids + token, mask=valid, other=0)
    if SHARED:
        return token * E
    return token * (HEADS * E) + head * E


@triton.jit
def first_layer(
    inputs, starts, valid, w1, b1, first, E: tl.constexpr, H: tl.constexpr, HP: tl.constexpr, EB: tl.constexpr,
    TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Return ``x @ w1 + b1`` of a tile, before GELU, for HP hidden units from ``first`` on; E is taken EB at a time."""
    hidden = first + tl.arange(0, HP)
    before = tl.zeros([TILE, HP], dtype=tl.float32)
    for start in range(0, E, EB):
        columns = start + tl.arange(0, EB)
        x = tl.load(
            inputs + starts[:, None] + columns[None, :], mask=valid[:, None] & (columns < E)[None, :], other=0.0
        ).to(tl.float32)
        w = tl.load(
            w1 + columns[:, None] * H + hidden[None, :], mask=(columns < E)[:, None] & (hidden < H)[None, :], other=0.0
        ).to(tl.float32)
        before = tl.dot(x, w, before, input_precision=PRECISION)
    return before + tl.load(b1 + hidden, mask=hidden < H, other=0.0).to(tl.float32)[None, :]


@triton.jit
def gelu(x):
    """Return the exact GELU."""
    return 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def gelu_slope(x):
    """Return the derivative of the exact GELU."""
    return 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)


@triton.jit
def link_weight(hidden, units, w2, b2, k, H: tl.constexpr):
    """Return the weights of link k of a tile, ``hidden @ w2[:, k] + b2[k]``, in registers; w2 is ``[K, H]`` here."""
    column = tl.load(w2 + k * H + units, mask=units < H, other=0.0).to(tl.float32)
    return tl.sum(hidden * column[None, :], 1) + tl.load(b2 + k).to(tl.float32)


@triton.jit
def follow_link(rows, shift, length, RING: tl.constexpr):
    """Return the rows at the other end of a link and whether they exist.

    A shift lies within (-length, length) on a ring, so that one addition or subtraction closes it.
    """
    neighbors = rows + shift
    if RING:
        neighbors = tl.where(neighbors >= length, neighbors - length, neighbors)
        neighbors = tl.where(neighbors < 0, neighbors + length, neighbors)
    return neighbors, (rows < length) & (neighbors >= 0) & (neighbors < length)


@triton.jit
def load_rows(pointer, starts, exist, C: tl.constexpr, CP: tl.constexpr):
    """Return rows ``[TILE, CP]`` in float32; zero where they do not exist."""
    channels = tl.arange(0, CP)
    mask = exist[:, None] & (channels < C)[None, :]
    return tl.load(pointer + starts[:, None] + channels[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def store_rows(pointer, starts, mask, rows, C: tl.constexpr, CP: tl.constexpr):
    """Write rows ``[TILE, CP]`` in the tensor's dtype."""
    channels = tl.arange(0, CP)
    tl.store(
        pointer + starts[:, None] + channels[None, :],
        rows.to(pointer.dtype.element_ty),
        mask=mask[:, None] & (channels < C)[None, :],
    )


@triton.jit
def add_rows(pointer, starts, exist, rows, columns, E: tl.constexpr):
    """Add rows of these columns to a float32 tensor; no other program may touch them."""
    place = pointer + starts[:, None] + columns[None, :]
    mask = exist[:, None] & (columns < E)[None, :]
    tl.store(place, tl.load(place, mask=mask, other=0.0) + rows, mask=mask)


@triton.jit
def load_transposed(w1, units, columns, E: tl.constexpr, H: tl.constexpr):
    """Return ``w1[columns, units].T`` of a layer ``[E, H]``."""
    mask = (units < H)[:, None] & (columns < E)[None, :]
    return tl.load(w1 + columns[None, :] * H + units[:, None], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def store_transposed(dw1, block, units, columns, E: tl.constexpr, H: tl.constexpr):
    """Write ``dw1[columns, units] = block.T``."""
    mask = (units < H)[:, None] & (columns < E)[None, :]
    tl.store(dw1 + columns[None, :] * H + units[:, None], block, mask=mask)

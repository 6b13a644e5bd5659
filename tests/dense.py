"""The factors as dense matrices, written entry by entry from the definition and independent of the library's code."""

from __future__ import annotations

import functools

import torch
from torch import Tensor


def factor(weights: Tensor, offsets: list[int], length: int, ring: bool) -> Tensor:
    """One sequence's factor ``[rows, rows]`` from its weights ``[rows, links]``, zero past the length."""
    rows = weights.shape[0]
    i, j, k = entries(tuple(offsets), length, ring)
    return weights.new_zeros(rows, rows).index_put((i, j), weights[i, k], accumulate=True)


@functools.cache
def entries(offsets: tuple[int, ...], length: int, ring: bool) -> Tensor:
    """Row, column and link of every entry of a factor, ``[3, entries]``."""
    triples = []
    for i in range(length):
        for k, offset in enumerate(offsets):
            j = (i + offset) % length if ring else i + offset
            if 0 <= j < length:
                triples.append((i, j, k))
    return torch.tensor(triples, dtype=torch.int64).reshape(-1, 3).T


def link_mix(weights: Tensor, values: Tensor, offsets: list[int], lengths: list[int], ring: bool) -> Tensor:
    """Each sequence's factor times its values, zero past its length."""
    alive = torch.arange(values.shape[1]) < torch.tensor(lengths)[:, None]
    values = torch.where(alive[..., None], values, 0)
    matrices = [factor(w, offsets, n, ring) for w, n in zip(weights, lengths, strict=True)]
    return torch.stack(matrices) @ values


def paramix(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: list[list[int]],
    residual: str,
    lengths: list[int],
    ring: bool,
) -> Tensor:
    """The chain as an explicit product of dense matrices, applied to the values."""
    alive = (torch.arange(values.shape[1]) < torch.tensor(lengths)[:, None])[..., None]
    inputs, values = torch.where(alive, inputs, 0), torch.where(alive, values, 0)
    identity = torch.eye(values.shape[1], dtype=values.dtype)
    product = identity.expand(len(values), -1, -1)
    for m, row in enumerate(offsets):
        before = inputs @ w1[m] + b1[m]
        hidden = before * 0.5 * (1 + torch.erf(before / 2**0.5))
        weights = hidden @ w2[m] + b2[m]
        matrix = torch.stack([factor(w, row, n, ring) for w, n in zip(weights, lengths, strict=True)])
        product = {
            "factor": (matrix + identity) @ product,
            "block": matrix @ product + identity,
            "none": matrix @ product,
        }[residual]
    return product @ values


def paramix_heads(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: list[list[list[int]]],
    residual: str,
    lengths: list[int],
    ring: bool,
) -> Tensor:
    """Each head's product of dense matrices, applied to its slice of the channels; offsets are those of each head."""
    width, channels = w1.shape[2], values.shape[2] // len(w1)
    own = inputs.shape[2] != width
    heads = []
    for j, table in enumerate(offsets):
        x = inputs[..., j * width : (j + 1) * width] if own else inputs
        value = values[..., j * channels : (j + 1) * channels]
        heads.append(paramix(x, value, w1[j], b1[j], w2[j], b2[j], table, residual, lengths, ring))
    return torch.cat(heads, 2)

"""The equations in plain PyTorch: the truth every engine is tested against.

Nothing here builds [batch, length, links, channels]; links are accumulated one by one. A sequence with a length of its
own is cut out and treated as a whole sequence of that length, so that what lies past its end cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.ops.chain import Chain, kept_factors


def missing() -> str | None:
    """Why this engine cannot run here; None where it can."""
    return None


def refuses(values: Tensor) -> str | None:
    """Why this engine cannot serve such tensors; None where it can."""
    return None


def link_mix(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """``out[b, i] = sum_k weights[b, i, k] * values[b, i + offsets[k]]``."""
    mixed = torch.zeros_like(values, memory_format=torch.contiguous_format)
    for batch, length in _sequences(values, lengths):
        mixed[batch, :length] = _mix(weights[batch, :length], values[batch, :length], offsets, ring)
    return mixed


def link_mix_backward(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and of the values."""
    dweights = torch.zeros_like(weights, memory_format=torch.contiguous_format)
    dvalues = torch.zeros_like(values, memory_format=torch.contiguous_format)
    for batch, length in _sequences(values, lengths):
        dweights[batch, :length], dvalues[batch, :length] = _mix_backward(
            grad[batch, :length], weights[batch, :length], values[batch, :length], offsets, ring
        )
    return dweights, dvalues


def paramix(chain: Chain, keep: int) -> tuple[Tensor, Tensor]:
    """The chain's output, and the inputs of factors keep, 2 keep, ... for the backward pass (none for keep = 0)."""
    chain, values = _spelled_out(chain), chain.values
    mixed = torch.zeros_like(values, memory_format=torch.contiguous_format)
    kept = values.new_zeros(kept_factors(chain.factors, keep), *values.shape)
    for batch, length in _sequences(values, chain.lengths):
        x, first = chain.inputs[batch, :length], values[batch, :length]
        value = first
        for m in range(chain.factors):
            if keep and m and m % keep == 0:
                kept[m // keep - 1, batch, :length] = value
            value = _factor(chain, m, x, value, first)
        mixed[batch, :length] = value
    return mixed, kept


def paramix_backward(grad: Tensor, chain: Chain, keep: int, kept: Tensor) -> tuple[Tensor, ...]:
    """Gradients of inputs, values, w1, b1, w2, b2; hidden layers, weights and values not kept are recomputed."""
    table, symbols, chain = chain.inputs, chain.symbols, _spelled_out(chain)
    w1, b1, w2, b2 = chain.w1, chain.b1, chain.w2, chain.b2
    grads = tuple(torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in chain[:6])
    dinputs, dvalues, dw1, db1, dw2, db2 = grads
    for batch, length in _sequences(chain.values, chain.lengths):
        x, first, upstream = chain.inputs[batch, :length], chain.values[batch, :length], grad[batch, :length]
        dx, dfirst = dinputs[batch, :length], dvalues[batch, :length]
        for start in reversed(range(0, chain.factors, keep)):
            stop = min(start + keep, chain.factors)
            segment = [kept[start // keep - 1, batch, :length] if start else first]
            for m in range(start, stop - 1):
                segment.append(_factor(chain, m, x, segment[-1], first))
            for m in reversed(range(start, stop)):
                before = x @ w1[m] + b1[m]
                hidden = F.gelu(before)
                weights = hidden @ w2[m] + b2[m]
                dweights, dvalue = _mix_backward(upstream, weights, segment[m - start], chain.offsets[m], chain.ring)
                dw2[m] += torch.einsum("bnh,bnk->hk", hidden, dweights)
                db2[m] += dweights.sum((0, 1))
                dbefore = torch.ops.aten.gelu_backward(dweights @ w2[m].T, before)
                dw1[m] += torch.einsum("bne,bnh->eh", x, dbefore)
                db1[m] += dbefore.sum((0, 1))
                dx += dbefore @ w1[m].T
                if chain.residual == "block":
                    dfirst += upstream
                upstream = dvalue + upstream if chain.residual == "factor" else dvalue
        dfirst += upstream
    if symbols is not None:
        dinputs = lookup_backward(dinputs.flatten(0, 1), symbols.flatten(), table.shape[0])
    return dinputs, *grads[1:]


def mlp(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """``gelu(inputs @ w1 + b1) @ w2 + b2``; rows past the lengths are zero."""
    out = inputs.new_zeros(*inputs.shape[:2], w2.shape[1])
    for batch, length in _sequences(inputs, lengths):
        out[batch, :length] = F.gelu(inputs[batch, :length] @ w1 + b1) @ w2 + b2
    return out


def mlp_backward(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, ...]:
    """Gradients of inputs, w1, b1, w2, b2; the hidden layer is recomputed."""
    grads = tuple(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (inputs, w1, b1, w2, b2))
    dinputs, dw1, db1, dw2, db2 = grads
    for batch, length in _sequences(inputs, lengths):
        x, upstream = inputs[batch, :length], grad[batch, :length]
        before = x @ w1 + b1
        dw2 += torch.einsum("bnh,bnk->hk", F.gelu(before), upstream)
        db2 += upstream.sum((0, 1))
        dbefore = torch.ops.aten.gelu_backward(upstream @ w2.T, before)
        dw1 += torch.einsum("bne,bnh->eh", x, dbefore)
        db1 += dbefore.sum((0, 1))
        dinputs[batch, :length] = dbefore @ w1.T
    return grads


def lookup(ids: Tensor, table: Tensor) -> Tensor:
    """The table's rows of these ids, in the table's dtype."""
    return table[ids]


def lookup_backward(grad: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Row by row the sum of grad ``[tokens, channels]`` over the tokens with that id."""
    return grad.new_zeros(rows, grad.shape[1]).index_add_(0, ids, grad)


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """Zero where an element's 32 random bits are below p, else scaled; the bits are a hash of seed and element."""
    runs = [
        _random_bits(torch.arange(start, min(start + 2**32, values.numel()), device=values.device), seed)
        for start in range(0, values.numel(), 2**32)
    ]
    bits = torch.cat(runs) if runs else torch.empty(0)
    threshold = min(round(p * 2**32), 2**32 - 1)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return values * torch.where(bits >= threshold, scale, 0.0).to(values.dtype).reshape(values.shape)


def _spelled_out(chain: Chain) -> Chain:
    """The same chain with inputs for every token instead of a table of them."""
    return chain if chain.symbols is None else chain._replace(inputs=chain.inputs[chain.symbols], symbols=None)


def _factor(chain: Chain, m: int, x: Tensor, value: Tensor, first: Tensor) -> Tensor:
    """``V <- W_m V + residual``, where row i of W_m is written from x_i."""
    weights = F.gelu(x @ chain.w1[m] + chain.b1[m]) @ chain.w2[m] + chain.b2[m]
    mixed = _mix(weights, value, chain.offsets[m], chain.ring)
    if chain.residual == "none":
        return mixed
    return mixed + (value if chain.residual == "factor" else first)


def _mix(weights: Tensor, values: Tensor, offsets: Tensor, ring: bool) -> Tensor:
    mixed = torch.zeros_like(values)
    for k, offset in enumerate(offsets.tolist()):
        for rows, neighbours in _spans(offset, values.shape[1], ring):
            mixed[:, rows].addcmul_(weights[:, rows, k : k + 1], values[:, neighbours])
    return mixed


def _mix_backward(grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, ring: bool) -> tuple[Tensor, Tensor]:
    dweights, dvalues = torch.zeros_like(weights), torch.zeros_like(values)
    for k, offset in enumerate(offsets.tolist()):
        for rows, neighbours in _spans(offset, values.shape[1], ring):
            dweights[:, rows, k] = torch.einsum("bnc,bnc->bn", grad[:, rows], values[:, neighbours])
            dvalues[:, neighbours].addcmul_(weights[:, rows, k : k + 1], grad[:, rows])
    return dweights, dvalues


def _spans(offset: int, length: int, ring: bool) -> Iterator[tuple[slice, slice]]:
    """Ranges of rows and of their neighbours at ``row + offset``: two where the link wraps round the ring."""
    if ring:
        offset %= length
        yield slice(0, length - offset), slice(offset, length)
        if offset:
            yield slice(length - offset, length), slice(0, offset)
    elif abs(offset) < length:
        first, last = max(0, -offset), min(length, length - offset)
        yield slice(first, last), slice(first + offset, last + offset)


def _sequences(values: Tensor, lengths: Tensor | None) -> Iterator[tuple[slice, int]]:
    """The batch as one piece where all sequences are full, else sequence by sequence, each with its own length."""
    if lengths is None:
        if values.shape[1]:
            yield slice(None), values.shape[1]
    else:
        for b, length in enumerate(lengths.tolist()):
            if length:
                yield slice(b, b + 1), length


def _random_bits(element: Tensor, seed: int) -> Tensor:
    """32 bits for each of a run of elements with equal upper bits: keyed rounds of xor-shift and odd multiplication."""
    high = _spread(_spread(seed) ^ (int(element[0]) >> 32))
    word = (element & 0xFFFFFFFF) ^ (high & 0xFFFFFFFF)
    word = (word * 0x9E3779B1) & 0xFFFFFFFF
    word = ((word ^ (word >> 15) ^ (high >> 32)) * 0x85EBCA77) & 0xFFFFFFFF
    word = ((word ^ (word >> 13) ^ (_spread(high) & 0xFFFFFFFF)) * 0xC2B2AE3D) & 0xFFFFFFFF
    return word ^ (word >> 16)


def _spread(seed: int) -> int:
    """SplitMix64: consecutive seeds become unrelated 64-bit numbers."""
    seed = (seed + 0x9E3779B97F4A7C15) % 2**64
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EB % 2**64
    return seed ^ (seed >> 31)

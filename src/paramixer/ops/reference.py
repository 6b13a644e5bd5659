"""The equations in plain PyTorch, against which every backend is tested.

Nothing here builds [batch, length, links, channels]; links are accumulated one by one. A sequence with its own length
is sliced out and computed as a whole sequence of that length, so that rows past its end have no effect. A head is
sliced out and computed as an operator without heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.chain import Chain, checkpoint_shape, widen
from paramixer.ops.checks import check_token_values, past_end
from paramixer.ops.ngram_layout import NgramBlock, NgramLayout

takes_half = False

# Sequences are shorter than 2 to this power.
_POSITION_BITS = 31
# Odd, and its powers differ in all bits: the bases of the numbers that are hashed, of tokens and of words.
_HASH_BASE, _WORD_BASE = 0x9E3779B97F4A7C15 - 2**64, 0xD1342543DE82EF95 - 2**64


def unavailable_reason() -> str | None:
    """Return why this backend cannot run in this process; None if it can."""
    return None


def unsupported_reason(values: Tensor) -> str | None:
    """Return why this backend cannot compute with such tensors; None if it can."""
    return None


def link_mix(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """Return ``out[b, i] = sum_k weights[b, i, k] * values[b, i + offsets[k]]``, for each head."""
    if weights.dim() == 4:
        heads = zip(weights.unbind(2), values.chunk(weights.shape[2], 2), offsets, strict=True)
        return torch.cat([link_mix(*head, lengths, ring) for head in heads], 2)
    mixed = torch.zeros_like(values, memory_format=torch.contiguous_format)
    for batch, length in _sequences(values, lengths):
        mixed[batch, :length] = _mix(weights[batch, :length], values[batch, :length], offsets, ring)
    return mixed


def link_mix_backward(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of weights and values."""
    if weights.dim() == 4:
        slices = (tensor.chunk(weights.shape[2], 2) for tensor in (grad, values))
        heads = zip(*slices, weights.unbind(2), offsets, strict=True)
        parts = [link_mix_backward(g, weight, value, links, lengths, ring) for g, value, weight, links in heads]
        return torch.stack([part[0] for part in parts], 2), torch.cat([part[1] for part in parts], 2)
    dweights = torch.zeros_like(weights, memory_format=torch.contiguous_format)
    dvalues = torch.zeros_like(values, memory_format=torch.contiguous_format)
    for batch, length in _sequences(values, lengths):
        dweights[batch, :length], dvalues[batch, :length] = _mix_backward(
            grad[batch, :length], weights[batch, :length], values[batch, :length], offsets, ring
        )
    return dweights, dvalues


def paramix(chain: Chain, checkpoint_every: int) -> tuple[Tensor, Tensor]:
    """Return the chain's output and the checkpoints: inputs of factors c, 2c, ... with c = checkpoint_every."""
    chain, values = _expand_rows(chain), chain.values
    if chain.heads is not None:
        parts = [paramix(head, checkpoint_every) for head in chain.split_heads()]
        return torch.cat([mixed for mixed, _ in parts], 2), torch.stack([stored for _, stored in parts], 2)
    mixed = torch.zeros_like(values, memory_format=torch.contiguous_format)
    checkpoints = values.new_zeros(checkpoint_shape(values, chain.w1, checkpoint_every))
    for batch, length in _sequences(values, chain.lengths):
        x, first = _cut(chain.inputs, batch, length), _cut(values, batch, length)
        value = first
        for m in range(chain.factors):
            if checkpoint_every and m and m % checkpoint_every == 0:
                checkpoints[m // checkpoint_every - 1, batch, :length] = value
            value = _factor(chain, m, x, value, first)
        mixed[batch, :length] = value
    return mixed, checkpoints


def paramix_backward(grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of inputs, values, w1, b1, w2, b2, recomputing what is not checkpointed."""
    table, row_ids, chain = chain.inputs, chain.row_ids, _expand_rows(chain)
    if chain.heads is not None:
        dinputs, *others = _backward_heads(grad, chain, checkpoint_every, checkpoints)
        return _sum_rows(dinputs, row_ids, table), *others
    w1, b1, w2, b2 = chain.w1, chain.b1, chain.w2, chain.b2
    grads = tuple(torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in chain[:6])
    dinputs, dvalues, dw1, db1, dw2, db2 = grads
    for batch, length in _sequences(chain.values, chain.lengths):
        x, first, upstream = (_cut(tensor, batch, length) for tensor in (chain.inputs, chain.values, grad))
        dx, dfirst = dinputs[batch, :length], dvalues[batch, :length]
        for start in reversed(range(0, chain.factors, checkpoint_every)):
            stop = min(start + checkpoint_every, chain.factors)
            segment = [checkpoints[start // checkpoint_every - 1, batch, :length] if start else first]
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
    return _sum_rows(dinputs, row_ids, table), *grads[1:]


def mlp(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """Return ``gelu(inputs @ w1 + b1) @ w2 + b2``; rows past the lengths are zero."""
    out = inputs.new_zeros(*inputs.shape[:2], w2.shape[1])
    for batch, length in _sequences(inputs, lengths):
        out[batch, :length] = F.gelu(_cut(inputs, batch, length) @ w1 + b1) @ w2 + b2
    return out


def mlp_backward(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, ...]:
    """Return the gradients of inputs, w1, b1, w2, b2, recomputing the hidden layer."""
    grads = tuple(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (inputs, w1, b1, w2, b2))
    dinputs, dw1, db1, dw2, db2 = grads
    for batch, length in _sequences(inputs, lengths):
        x, upstream = _cut(inputs, batch, length), _cut(grad, batch, length)
        before = x @ w1 + b1
        dw2 += torch.einsum("bnh,bnk->hk", F.gelu(before), upstream)
        db2 += upstream.sum((0, 1))
        dbefore = torch.ops.aten.gelu_backward(upstream @ w2.T, before)
        dw1 += torch.einsum("bne,bnh->eh", x, dbefore)
        db1 += dbefore.sum((0, 1))
        dinputs[batch, :length] = dbefore @ w1.T
    return grads


def lookup(ids: Tensor, table: Tensor) -> Tensor:
    """Return the table's rows with these ids, in the table's dtype."""
    return table[ids]


def lookup_backward(grad: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Return, for every row, the sum of grad ``[tokens, channels]`` over the tokens with that id."""
    return grad.new_zeros(rows, grad.shape[1]).index_add_(0, ids, grad)


def ngram_rows(
    tokens: Tensor, lengths: Tensor | None, layout: NgramLayout, admitted: Tensor | None, letters: Tensor | None = None
) -> Tensor:
    """Return the row of each position's n-gram of each order, int32 ``[batch, length, orders]``; -1 for none."""
    batch, length = tokens.shape
    past = past_end(tokens.new_full((batch,), length) if lengths is None else lengths, length)
    tokens = tokens.masked_fill(past, 0)
    check_token_values(tokens, layout.vocabulary)
    rows = tokens.new_full((batch, length, len(layout.blocks)), -1, dtype=torch.int32)
    if letters is not None:
        rows[..., len(layout.orders) :] = number_words(letters[tokens].masked_fill(past, 0), layout)
    for number, block in enumerate(layout.blocks):
        if block.order <= length and not block.of_words:
            ngrams = tokens.unfold(1, block.order, 1).unbind(-1)
            rows[:, block.order - 1 :, number] = number_ngrams(ngrams, block, layout.vocabulary).int()
    rows[past] = -1
    if admitted is not None:
        rows[(rows >= 0) & (admitted[rows.clamp(min=0)] == 0)] = -1
    return rows


def count_ngrams(
    tokens: Tensor,
    lengths: Tensor | None,
    layout: NgramLayout,
    first: int,
    seen: Tensor,
    counts: Tensor,
    letters: Tensor | None = None,
) -> None:
    """Add to the counts the sequences in which each row occurs; they are numbered from first on in seen."""
    for sequence, rows in enumerate(ngram_rows(tokens, lengths, layout, None, letters), first):
        distinct = torch.unique(rows[rows >= 0])
        counts[distinct] += 1
        seen[distinct] = sequence


def occurrences(rows: Tensor, total: int) -> Tensor:
    """Return how often rows ``[batch, length, orders]`` occur in their sequence, int32; 0 where one occurred before."""
    ordered, places = rows.sort(dim=1, stable=True)
    first = torch.ones_like(rows, dtype=torch.bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = (first.cumsum(1) - 1).clamp(min=0)
    sizes = torch.zeros_like(group).scatter_add(1, group, torch.ones_like(group))
    counts = (sizes.gather(1, group) * first).int()
    return torch.zeros_like(rows).scatter(1, places, counts).masked_fill(rows < 0, 0)


def bag(rows: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the sums ``[..., width]`` of the table's rows ``[..., orders]`` times their weights; -1 adds nothing."""
    found = widen(table[rows.clamp(min=0)])
    found = found if weights is None else found * widen(weights)[..., None]
    return found.masked_fill((rows < 0)[..., None], 0).sum(-2).to(table.dtype)


def bag_backward(grad: Tensor, rows: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the distinct rows, ascending, and the weighted sums of grad ``[tokens, width]`` over their tokens."""
    token, order = (rows >= 0).nonzero().unbind(-1)
    distinct, number = torch.unique(rows[token, order].long(), return_inverse=True)
    grads = grad[token] if weights is None else grad[token] * weights[token, order][:, None].to(grad.dtype)
    return distinct, grad.new_zeros(len(distinct), grad.shape[1]).index_add_(0, number, grads)


def update_rows_(
    table: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, grads: Tensor, step: AdamWStep
) -> None:
    """Apply one step of AdamW to these rows of a table and of its moments."""
    mean = exp_avg[rows].lerp(grads, 1 - step.beta1)
    square = exp_avg_sq[rows] * step.beta2 + (1 - step.beta2) * grads * grads
    exp_avg[rows], exp_avg_sq[rows] = mean, square
    table[rows] = table[rows] * step.decay - step.size * mean / (square.sqrt() / step.scale + step.eps)


def number_ngrams(ngrams: Sequence[Tensor], block: NgramBlock, vocabulary: int) -> Tensor:
    """Return the table rows of n-grams: their base-vocabulary number, or a hash of all tokens.

    Args:
        ngrams: the first token of every n-gram, then the second, and so on; of one shape.
        block: the rows of their order.
        vocabulary: the number of different tokens.
    """
    base = vocabulary if block.counted else _HASH_BASE
    code = torch.zeros_like(ngrams[0])
    for token in ngrams:
        code = code * base + token
    return block.start + (code if block.counted else _hash(code, block.rows))


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """Set elements to zero whose 32 random bits are below p, scale the others; the bits hash seed and element."""
    runs = [
        _random_bits(torch.arange(min(2**32, values.numel() - start), device=values.device), *dropout_keys(seed, run))
        for run, start in enumerate(range(0, values.numel(), 2**32))
    ]
    bits = torch.cat(runs) if runs else torch.empty(0, device=values.device)
    kept = torch.where(bits >= dropout_threshold(p), dropout_scale(p), 0.0)
    return values * kept.to(values.dtype).reshape(values.shape)


def dropout_keys(seed: int, run: int) -> tuple[int, int, int]:
    """Return the three 32-bit numbers that the hash of a run of 2**32 elements depends on."""
    high = _mix_seed(_mix_seed(seed) ^ run)
    return high & 0xFFFFFFFF, high >> 32, _mix_seed(high) & 0xFFFFFFFF


def dropout_threshold(p: float) -> int:
    """Return the number of 32 bits below which an element is set to zero."""
    return min(round(p * 2**32), 2**32 - 1)


def dropout_scale(p: float) -> float:
    """Return by what the other elements are multiplied."""
    return 1 / (1 - p) if p < 1 else 0.0


def _expand_rows(chain: Chain) -> Chain:
    """Return the chain with inputs for every token instead of a table of rows."""
    return chain if chain.row_ids is None else chain._replace(inputs=chain.inputs[chain.row_ids], row_ids=None)


def _sum_rows(dinputs: Tensor, row_ids: Tensor | None, table: Tensor) -> Tensor:
    """Return the gradient of the table from those of the tokens' inputs; without row ids these are the result."""
    if row_ids is None:
        return dinputs
    return lookup_backward(dinputs.flatten(0, 1), row_ids.flatten(), table.shape[0])


def _backward_heads(grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients head by head, side by side; those of inputs that all heads read are added."""
    chains = chain.split_heads()
    heads = zip(grad.chunk(len(chains), 2), chains, checkpoints.unbind(2), strict=True)
    parts = [paramix_backward(g, head, checkpoint_every, inputs) for g, head, inputs in heads]
    dinputs, dvalues, *dparameters = zip(*parts, strict=True)
    joined = torch.stack(dinputs).sum(0) if chain.shares_inputs else torch.cat(dinputs, 2)
    return joined, torch.cat(dvalues, 2), *(torch.stack(gradients) for gradients in dparameters)


def _factor(chain: Chain, m: int, x: Tensor, value: Tensor, first: Tensor) -> Tensor:
    """Return ``W_m V + residual``, where row i of W_m is computed from x_i."""
    weights = F.gelu(x @ chain.w1[m] + chain.b1[m]) @ chain.w2[m] + chain.b2[m]
    mixed = _mix(weights, value, chain.offsets[m], chain.ring)
    if chain.residual == "none":
        return mixed
    return mixed + (value if chain.residual == "factor" else first)


def _mix(weights: Tensor, values: Tensor, offsets: Tensor, ring: bool) -> Tensor:
    mixed = torch.zeros_like(values)
    for k, offset in enumerate(offsets.tolist()):
        for rows, neighbors in _spans(offset, values.shape[1], ring):
            mixed[:, rows].addcmul_(weights[:, rows, k : k + 1], values[:, neighbors])
    return mixed


def _mix_backward(grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, ring: bool) -> tuple[Tensor, Tensor]:
    dweights, dvalues = torch.zeros_like(weights), torch.zeros_like(values)
    for k, offset in enumerate(offsets.tolist()):
        for rows, neighbors in _spans(offset, values.shape[1], ring):
            dweights[:, rows, k] = torch.einsum("bnc,bnc->bn", grad[:, rows], values[:, neighbors])
            dvalues[:, neighbors].addcmul_(weights[:, rows, k : k + 1], grad[:, rows])
    return dweights, dvalues


def _spans(offset: int, length: int, ring: bool) -> Iterator[tuple[slice, slice]]:
    """Yield ranges of rows and of their neighbors at ``row + offset``: two where the link wraps around the ring."""
    if ring:
        offset %= length
        yield slice(0, length - offset), slice(offset, length)
        if offset:
            yield slice(length - offset, length), slice(0, offset)
    elif abs(offset) < length:
        first, last = max(0, -offset), min(length, length - offset)
        yield slice(first, last), slice(first + offset, last + offset)


def _sequences(values: Tensor, lengths: Tensor | None) -> Iterator[tuple[slice, int]]:
    """Yield the batch in one piece if all sequences are full, else each sequence with its own length."""
    if lengths is None:
        if values.shape[1]:
            yield slice(None), values.shape[1]
    else:
        for b, length in enumerate(lengths.tolist()):
            if length:
                yield slice(b, b + 1), length


def _cut(tensor: Tensor, batch: slice, length: int) -> Tensor:
    """Return rows of some sequences in memory of their own: the bits of a product depend on strides and alignment."""
    return tensor[batch, :length].clone(memory_format=torch.contiguous_format)


def number_words(letters: Tensor, layout: NgramLayout) -> Tensor:
    """Return the table rows of the n-grams of words that end at each position, ``[batch, length, words]``.

    Args:
        letters: ``[batch, length]``, above 0 inside of words.
        layout: with the blocks.
    """
    blocks = [block for block in layout.blocks if block.of_words]
    batch, length = letters.shape
    inside = letters > 0
    # Padded before it is cut, so that no width is special to a tracer.
    ends = inside & (F.pad(letters, (0, 1)).narrow(1, 1, length) <= 0)
    # The number of a word is that of its letters in the base, as for n-grams of tokens: the difference of two sums over
    # everything before, because what separates words adds nothing.
    steps = torch.arange(length, device=letters.device)
    sums = (letters * _powers(pow(_HASH_BASE, -1, 2**64), steps)).cumsum(1)
    # Words of a sequence one after another, from 1 on.
    place = torch.where(ends, ends.cumsum(1), 0)
    empty = sums.new_zeros(batch, length + 1)
    before = empty.scatter(1, place, sums.masked_fill(~ends, 0)).gather(1, (place - 1).clamp(min=0))
    numbers = empty.scatter(1, place, ((sums - before) * _powers(_HASH_BASE, steps)).masked_fill(~ends, 0))
    rows = []
    code = torch.zeros_like(letters)
    for order, block in enumerate(blocks):
        earlier = place - order
        # The words from the last one back: each further one with the next power of the base of words.
        code = code + numbers.gather(1, earlier.clamp(min=0)) * _as_int64(pow(_WORD_BASE, order, 2**64))
        rows.append(torch.where(earlier > 0, block.start + _hash(code, block.rows), -1))
    return torch.stack(rows, -1).int()


def _powers(base: int, exponents: Tensor) -> Tensor:
    """Return the powers of a number modulo 2**64, by squaring: every bit of an exponent has a factor."""
    powers = torch.ones_like(exponents)
    for bit in range(_POSITION_BITS):
        factor = _as_int64(pow(base, 2**bit, 2**64))
        powers = powers * torch.where((exponents >> bit) & 1 > 0, factor, 1)
    return powers


def _as_int64(number: int) -> int:
    """Return the number modulo 2**64 with the sign that int64 gives it."""
    return (number + 2**63) % 2**64 - 2**63


def _hash(code: Tensor, rows: int) -> Tensor:
    """Return SplitMix64 of a number; its upper 32 bits as a fraction of the rows."""
    code = code + _HASH_BASE
    code = (code ^ _shift(code, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    code = (code ^ _shift(code, 27)) * (0x94D049BB133111EB - 2**64)
    return _shift(_shift(code ^ _shift(code, 31), 32) * rows, 32)


def _shift(word: Tensor, bits: int) -> Tensor:
    """Return a 64-bit word shifted right, with zeros from the left."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


def _random_bits(element: Tensor, low: int, high: int, last: int) -> Tensor:
    """Return 32 bits per element of a run: rounds of xor-shift and odd multiplication."""
    word = element ^ low
    word = (word * 0x9E3779B1) & 0xFFFFFFFF
    word = ((word ^ (word >> 15) ^ high) * 0x85EBCA77) & 0xFFFFFFFF
    word = ((word ^ (word >> 13) ^ last) * 0xC2B2AE3D) & 0xFFFFFFFF
    return word ^ (word >> 16)


def _mix_seed(seed: int) -> int:
    """Return SplitMix64 of the seed: consecutive seeds become unrelated 64-bit numbers."""
    seed = (seed + 0x9E3779B97F4A7C15) % 2**64
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EB % 2**64
    return seed ^ (seed >> 31)

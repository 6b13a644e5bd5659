"""N-gram tables: every position gets the sum of the learned vectors of the n-grams that end there.

The work has two parts. ``ngram_rows`` finds the table rows of a position's n-grams, ``table_rows.bag`` adds them up. Of
a sequence's rows, ``occurrences`` tells how often each is there. The gradient of the table is row-sparse: a step costs
what its n-grams cost, however large the table is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from paramixer.ops.backends import select_backend
from paramixer.ops.checks import as_int64, as_lengths, check_length_values
from paramixer.ops.ngram_layout import NgramLayout


def ngram_rows(
    tokens: Tensor,
    layout: NgramLayout,
    lengths: Tensor | Sequence[int] | None = None,
    admitted: Tensor | None = None,
    letters: Tensor | None = None,
) -> Tensor:
    """Return the table row of the n-gram of each order that ends at each position.

    An n-gram of words ends where its last word does. A word is a longest run of tokens that stand for letters.

    Args:
        tokens: ``[batch, length]``, ids below ``layout.vocabulary``. An n-gram lies within its sequence.
        layout: the orders n and the rows of each.
        lengths: ``[batch]``, 0 to length. Tokens past them may be anything.
        admitted: uint8 ``[layout.total]``; n-grams whose row has 0 here are left out.
        letters: int64 ``[vocabulary]``, for a layout with words: the letter, counted from 1, that a token stands for;
            0 for what separates words.

    Returns:
        int32 ``[batch, length, orders]``, those of tokens and then those of words; -1 for none.
    """
    ids = _as_tokens("ngram_rows", tokens)
    counts = as_lengths("ngram_rows", lengths, ids.shape[0])
    if admitted is not None and (admitted.dtype != torch.uint8 or list(admitted.shape) != [layout.total]):
        raise ValueError(
            f"ngram_rows: admitted is {admitted.dtype} {list(admitted.shape)}, expected torch.uint8 [{layout.total}]"
        )
    check_letters("ngram_rows", letters, layout)
    sizes = list(layout.orders), layout.vocabulary, layout.rows, layout.words
    rows: Tensor = ngram_rows_op(ids, counts, letters, admitted, *sizes)
    return rows


def occurrences(rows: Tensor, layout: NgramLayout) -> Tensor:
    """Return how often each n-gram occurs in its sequence, int32 ``[batch, length, orders]``.

    Its first place has the number; at others, and where there is no n-gram, stands 0.

    Args:
        rows: from :func:`ngram_rows`.
        layout: of the rows.
    """
    counts: Tensor = occurrences_op(rows, layout.total)
    return counts


def count_ngrams(
    batches: Iterable[tuple[Tensor, Tensor | Sequence[int] | None]],
    layout: NgramLayout,
    device: str = "cpu",
    letters: Tensor | None = None,
) -> Tensor:
    """Return in how many sequences each row of a table occurs, int32 ``[layout.total]``.

    Args:
        batches: tokens ``[batch, length]`` with lengths ``[batch]`` or None, as for :func:`ngram_rows`.
        layout: the orders n and the rows of each.
        device: where the counts are made.
        letters: as for :func:`ngram_rows`.
    """
    check_letters("count_ngrams", letters, layout)
    counts = torch.zeros(layout.total, dtype=torch.int32, device=device)
    # The last sequence, counted from 1, in which each row was seen.
    seen = torch.zeros(layout.total, dtype=torch.int32, device=device)
    sequences = 0
    for tokens, lengths in batches:
        ids = _as_tokens("count_ngrams", tokens).to(device)
        limits = as_lengths("count_ngrams", lengths, ids.shape[0])
        check_length_values("count_ngrams", limits, ids.shape[1])
        backend = select_backend(torch.empty(0, device=device))
        limits = None if limits is None else limits.to(device)
        backend.count_ngrams(ids, limits, layout, sequences + 1, seen, counts, letters)
        sequences += ids.shape[0]
    return counts


@custom_op("paramixer::ngram_rows", mutates_args=())
def ngram_rows_op(
    tokens: Tensor,
    lengths: Tensor | None,
    letters: Tensor | None,
    admitted: Tensor | None,
    orders: Sequence[int],
    vocabulary: int,
    rows: int,
    words: int,
) -> Tensor:
    """Return the row of each position's n-gram of each order; -1 for none."""
    check_length_values("ngram_rows", lengths, tokens.shape[1])
    layout = NgramLayout(tuple(orders), vocabulary, rows, words)
    backend = select_backend(torch.empty(0, device=tokens.device))
    return backend.ngram_rows(tokens, lengths, layout, admitted, letters)


@ngram_rows_op.register_fake
def _(tokens: Tensor, _: Any, __: Any, ___: Any, orders: Sequence[int], *sizes: int) -> Tensor:
    return tokens.new_empty(*tokens.shape, len(orders) + sizes[-1], dtype=torch.int32)


@custom_op("paramixer::occurrences", mutates_args=())
def occurrences_op(rows: Tensor, total: int) -> Tensor:
    """Return how often rows occur in their sequence; 0 where one occurred before."""
    return select_backend(torch.empty(0, device=rows.device)).occurrences(rows, total)


@occurrences_op.register_fake
def _(rows: Tensor, total: int) -> Tensor:
    return torch.empty_like(rows, memory_format=torch.contiguous_format)


def check_letters(operator: str, letters: Tensor | None, layout: NgramLayout) -> None:
    """Raise a ValueError where a layout has words and no letters, or letters and no words."""
    if (letters is not None) != (layout.words > 0):
        raise ValueError(f"{operator}: words={layout.words} and letters go together; give both, or words=0 and None")
    if letters is not None and (letters.dtype != torch.int64 or list(letters.shape) != [layout.vocabulary]):
        raise ValueError(
            f"{operator}: letters is {letters.dtype} {list(letters.shape)}, expected torch.int64 [{layout.vocabulary}]"
        )


def _as_tokens(operator: str, tokens: Tensor) -> Tensor:
    ids = as_int64(operator, "tokens", tokens)
    if ids.dim() != 2:
        raise ValueError(f"{operator}: tokens have shape {list(ids.shape)}, expected [batch, length]")
    return ids

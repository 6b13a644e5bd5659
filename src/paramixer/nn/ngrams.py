"""Tables of n-grams, whose gradients and optimizer steps cost what the n-grams of a batch cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paramixer.ops.dropout import Dropout
from paramixer.ops.lazy_zeros import lazy_zeros
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.ngrams import check_letters, count_ngrams, ngram_rows, occurrences
from paramixer.ops.table_rows import bag

# What stands for a rarity of one.
_RARITY_UNIT = 16


class NgramTables(nn.Module):
    """Learned vectors of n-grams, of tokens and of words: their sums at each position, and a bag of a whole sequence.

    The bag is the sum of the vectors with the weights of TF-IDF: the logarithm of how often an n-gram occurs in the
    sequence times its rarity in the training data, scaled so that the weights of a sequence have norm 1. It makes the
    linear model of n-grams, which is hard to beat where data is small, a part of the network.

    The vectors start at zero, so that an n-gram which never occurred in training adds nothing. What reads them must not
    start at zero, too, or no gradient flows. :meth:`count` leaves out n-grams of too few training sequences: a vector
    learned from one sequence tells nothing about others.

    >>> tables = NgramTables(vocabulary=256, width=16, rows=2**12)
    >>> sums, bag = tables(torch.randint(256, (2, 100)), lengths=[100, 3])
    >>> sums.shape, bag.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 16]))

    Args:
        vocabulary: the number of different tokens.
        width: of the vectors; with 16, a row is a cache line.
        orders: the values of n.
        rows: the most rows of an order, see :class:`~paramixer.ops.ngram_layout.NgramLayout`.
        dropout: share of the positions whose n-grams are left out of a training step. It keeps a large table from
            learning its sequences by heart, and costs less than a step without.
        words: the longest n-grams of words; 0 for none.
        letters: of every token, the letter, counted from 1, that it stands for in a word; 0 for what separates words.
            Tokens that differ in case may stand for the same letter.
    """

    row_sparse: ClassVar = ("weight",)
    """Parameters whose gradients are sparse, see :func:`row_sparse_names`."""
    row_buffers: ClassVar = ("rarity",)
    """Buffers with a number for every row, most of them zero."""

    rarity: Tensor
    letters: Tensor | None

    def __init__(
        self,
        vocabulary: int,
        width: int = 16,
        orders: Sequence[int] = (2, 3, 4, 5),
        rows: int = 2**19,
        dropout: float = 0.0,
        words: int = 0,
        letters: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"width={width}; it must be at least 1")
        self.layout = NgramLayout(tuple(orders), vocabulary, rows, words)
        # They follow from the config, so that no file needs them, and a model that waits for its file has them.
        numbers = None if letters is None else torch.tensor(letters, dtype=torch.int64, device="cpu")
        self.register_buffer("letters", numbers, persistent=False)
        check_letters("NgramTables", self.letters, self.layout)
        self.dropout = Dropout(dropout)
        self.weight = nn.Parameter(lazy_zeros(self.layout.total, width))
        # In sixteenths, 0 for n-grams that are left out: one byte of each row is read for every n-gram of a sequence.
        self.register_buffer("rarity", torch.full((self.layout.total,), _RARITY_UNIT, dtype=torch.uint8))

    def forward(self, tokens: Tensor, lengths: Tensor | Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
        """Return the sums at each position, ``[batch, length, width]``, and the bag ``[batch, width]``.

        Args:
            tokens: ``[batch, length]``.
            lengths: ``[batch]``; past them tokens may be anything, and the sums are zero.
        """
        rows = self._find_rows(tokens, lengths)
        weights = self._weigh(rows)
        scale = 1.0
        if self.training and self.dropout.p:
            keep = self.dropout(torch.ones(tokens.shape, device=tokens.device))[..., None]
            rows, weights, scale = rows.masked_fill(keep == 0, -1), weights * keep, 1 / (1 - self.dropout.p)
        whole = bag(_without_zeros(rows, weights).flatten(1), self.weight, weights.flatten(1))
        sums = bag(rows, self.weight)
        return (sums if scale == 1 else sums * scale), whole

    def bag_shares(self, tokens: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return what every position adds to the bag, ``[batch, length, width]``; arguments as for :meth:`forward`.

        An n-gram stands where it first occurs.
        """
        rows = self._find_rows(tokens, lengths)
        weights = self._weigh(rows)
        return bag(_without_zeros(rows, weights), self.weight, weights)

    @torch.no_grad()
    def count(self, batches: Iterable[tuple[Tensor, Tensor | Sequence[int] | None]], at_least: int = 2) -> None:
        """Learn how rare each n-gram is, and leave out those that occur in too few sequences of the training data.

        Args:
            batches: tokens ``[batch, length]`` with lengths ``[batch]`` or None; each training sequence once.
            at_least: so many sequences an n-gram must occur in.
        """
        if at_least < 1:
            raise ValueError(f"at_least={at_least}; it must be at least 1")
        sequences = 0

        def number() -> Iterator[tuple[Tensor, Tensor | Sequence[int] | None]]:
            nonlocal sequences
            for tokens, lengths in batches:
                sequences += len(tokens)
                yield tokens, lengths

        counts = count_ngrams(number(), self.layout, letters=self.letters)
        rarity = 1 + math.log1p(sequences) - counts.float().log1p()
        levels = (_RARITY_UNIT * rarity).round().clamp(1, 255)
        self.rarity.copy_(torch.where(counts >= at_least, levels, 0.0))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set all vectors to zero; memory that was never written is not written now."""
        self.weight[(self.weight != 0).any(1)] = 0

    def extra_repr(self) -> str:
        """Return the sizes."""
        layout = self.layout
        return (
            f"{layout.vocabulary}, width={self.weight.shape[1]}, orders={layout.orders}, words={layout.words}, "
            f"rows={layout.rows}, in use={int(self.rarity.count_nonzero()):,} of {layout.total:,}"
        )

    def _find_rows(self, tokens: Tensor, lengths: Tensor | Sequence[int] | None) -> Tensor:
        """Return the row of each position's n-gram of each order, int32 ``[batch, length, orders]``; -1 for none."""
        return ngram_rows(tokens, self.layout, lengths, self.rarity, self.letters)

    def _weigh(self, rows: Tensor) -> Tensor:
        """Return the weights in the bag, ``[batch, length, orders]``; 0 but at the first place of an n-gram."""
        rarity = self.rarity.index_select(0, rows.clamp(min=0).flatten()).view_as(rows) / _RARITY_UNIT
        weights = occurrences(rows, self.layout).float().log1p() * rarity
        return F.normalize(weights.flatten(1)).view_as(weights).to(self.weight.dtype)


def _without_zeros(rows: Tensor, weights: Tensor) -> Tensor:
    """Return rows with -1, which costs nothing, where the weight is zero."""
    return rows.masked_fill(weights == 0, -1)


def row_sparse_names(model: nn.Module) -> list[str]:
    """Return the names of the parameters whose gradients are row-sparse; their modules list them in ``row_sparse``."""
    return _listed_names(model, "row_sparse")


def row_buffer_names(model: nn.Module) -> list[str]:
    """Return the names of the buffers with a number for every row; their modules list them in ``row_buffers``."""
    return _listed_names(model, "row_buffers")


def _listed_names(model: nn.Module, attribute: str) -> list[str]:
    return [
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        for name in getattr(module, attribute, ())
    ]

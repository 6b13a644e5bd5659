"""Tables of n-grams, whose gradients and optimizer steps cost what the n-grams of a batch cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from paramixer.ops.dropout import Dropout
from paramixer.ops.lazy_zeros import lazy_zeros
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.ngrams import check_letters, count_ngrams, distinct_ngrams, ngram_rows
from paramixer.ops.table_rows import bag


class NgramTables(nn.Module):
    """Every position gets the sum of the learned vectors of the n-grams, of tokens and of words, that end there.

    The vectors start at zero, so that an n-gram which never occurred in training adds nothing. What reads them must not
    start at zero, too, or no gradient flows. :meth:`count` leaves out n-grams of too few training sequences: a vector
    learned from one sequence tells nothing about others.

    >>> tables = NgramTables(vocabulary=256, width=16, rows=2**12)
    >>> tables(torch.randint(256, (2, 100)), lengths=[100, 3]).shape
    torch.Size([2, 100, 16])

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
    row_flags: ClassVar = ("admitted",)
    """Buffers of zeros and ones, one for every row."""

    admitted: Tensor
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
        self.register_buffer("admitted", torch.ones(self.layout.total, dtype=torch.uint8))

    def forward(self, tokens: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return the sums of the n-grams' vectors, ``[batch, length, width]``.

        Args:
            tokens: ``[batch, length]``.
            lengths: ``[batch]``; past them tokens may be anything, and the output is zero.
        """
        return self.sum_at_positions(self.find_rows(tokens, lengths))

    def find_rows(self, tokens: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return the row of each position's n-gram of each order, int32 ``[batch, length, orders]``; -1 for none.

        Arguments as for :meth:`forward`. While training, some positions have none: see ``dropout``.
        """
        keep = None
        if self.training and self.dropout.p:
            keep = self.dropout(torch.ones(tokens.shape, device=tokens.device)) > 0
        return ngram_rows(tokens, self.layout, lengths, self.admitted, keep, self.letters)

    def sum_at_positions(self, rows: Tensor) -> Tensor:
        """Return the sums ``[batch, length, width]`` of the vectors of rows from :meth:`find_rows`."""
        sums = bag(rows, self.weight)
        return sums / (1 - self.dropout.p) if self.training and self.dropout.p else sums

    def mean_of_distinct(self, rows: Tensor) -> Tensor:
        """Return the mean ``[batch, width]`` of the vectors of a sequence's n-grams, each n-gram once.

        Whether an n-gram occurs tells more than how often: texts repeat their subject and their commonest words.
        """
        distinct = distinct_ngrams(rows, self.layout).flatten(1)
        return bag(distinct, self.weight) / _count(distinct).to(self.weight.dtype)

    def shares_of_distinct(self, rows: Tensor) -> Tensor:
        """Return what every position adds to :meth:`mean_of_distinct`, ``[batch, length, width]``."""
        distinct = distinct_ngrams(rows, self.layout)
        return bag(distinct, self.weight) / _count(distinct.flatten(1)).to(self.weight.dtype)[..., None]

    @torch.no_grad()
    def count(self, batches: Iterable[tuple[Tensor, Tensor | Sequence[int] | None]], at_least: int = 2) -> None:
        """Admit the rows that occur in at least so many sequences of the training data, and no others.

        Args:
            batches: tokens ``[batch, length]`` with lengths ``[batch]`` or None; each training sequence once.
            at_least: 1 to 255 sequences.
        """
        if not 1 <= at_least <= 255:
            raise ValueError(f"at_least={at_least}; it must be 1 to 255 sequences")
        self.admitted.copy_(count_ngrams(batches, self.layout, letters=self.letters) >= at_least)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set all vectors to zero; memory that was never written is not written now."""
        self.weight[(self.weight != 0).any(1)] = 0

    def extra_repr(self) -> str:
        """Return the sizes."""
        layout = self.layout
        return (
            f"{layout.vocabulary}, width={self.weight.shape[1]}, orders={layout.orders}, words={layout.words}, "
            f"rows={layout.rows}, admitted={int(self.admitted.count_nonzero()):,} of {layout.total:,}"
        )


def _count(rows: Tensor) -> Tensor:
    """Return how many of a sequence's rows ``[batch, rows]`` are not -1, at least 1, ``[batch, 1]``."""
    return (rows >= 0).sum(1, keepdim=True).clamp(min=1)


def row_sparse_names(model: nn.Module) -> list[str]:
    """Return the names of the parameters whose gradients are row-sparse; their modules list them in ``row_sparse``."""
    return _listed_names(model, "row_sparse")


def row_flag_names(model: nn.Module) -> list[str]:
    """Return the names of the buffers of zeros and ones; their modules list them in ``row_flags``."""
    return _listed_names(model, "row_flags")


def _listed_names(model: nn.Module, attribute: str) -> list[str]:
    return [
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        for name in getattr(module, attribute, ())
    ]

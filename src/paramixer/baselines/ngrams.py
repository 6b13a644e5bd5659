"""Counts of n-grams and one linear layer: what a text or a genome gives away without any order beyond a few letters.

A model of classes by itself, not a layer. scikit-learn's logistic regression finds its weights; as a module it is
saved, loaded and asked like every other model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paramixer.nn.config import ParamixerConfig

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NAME = "ngrams"
LONGEST, BITS = 5, 18
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Ngrams(nn.Module):
    """Logits from the counts of all n-grams up to ``window`` tokens, hashed to ``rank`` columns.

    A count c counts as log(1 + c), and the counts of a sequence have length 1.
    """

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        if config.vocabulary is None or config.target != "class":
            raise ValueError("n-grams are counted in sequences of tokens that have classes; choose another model")
        self.config = config
        self.longest = config.window or LONGEST
        self.columns = config.rank or 1 << BITS
        self.weight = nn.Parameter(torch.zeros(config.outputs, self.columns))
        self.bias = nn.Parameter(torch.zeros(config.outputs))

    def forward(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Logits ``[batch, outputs]`` for token ids ``[batch, length]``; no gradient flows, it is not trained so."""
        rows = inputs.cpu().numpy()
        ends = self._ends(rows) if lengths is None else np.asarray(lengths)
        counted = self.counts([row[:end] for row, end in zip(rows, ends, strict=True)])
        logits: NDArray[np.float32] = counted @ self.weight.detach().cpu().numpy().T
        return torch.from_numpy(np.ascontiguousarray(logits)) + self.bias.detach().cpu()

    def counts(self, sequences: Sequence[NDArray[Any]]) -> csr_matrix:
        """Normalised counts, ``[sequences, columns]``."""
        from scipy.sparse import csr_matrix

        sizes = np.array([len(sequence) for sequence in sequences], np.int64)
        tokens = np.concatenate([np.asarray(sequence, np.uint64) for sequence in sequences] or [np.empty(0, np.uint64)])
        owner = np.repeat(np.arange(len(sequences)), sizes)
        left = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(tokens))
        codes = []
        with np.errstate(over="ignore"):
            grown = np.zeros(len(tokens), np.uint64)
            for length in range(1, self.longest + 1):
                # A gram one longer, wherever one still fits into its sequence.
                ahead = np.concatenate([tokens[length - 1 :], np.zeros(min(length - 1, len(tokens)), np.uint64)])
                grown = (grown + ahead + np.uint64(1)) * _MIX
                fits = left >= length
                mixed = (grown[fits] ^ (grown[fits] >> np.uint64(29))) * _MIX + np.uint64(length)
                column = (mixed >> np.uint64(20)) % np.uint64(self.columns)
                codes.append(owner[fits] * self.columns + column.astype(np.int64))
        places, counts = np.unique(np.concatenate(codes), return_counts=True)
        values = np.log1p(counts).astype(np.float32)
        rows = places // self.columns
        squares = np.zeros(len(sequences))
        np.add.at(squares, rows, values.astype(np.float64) ** 2)
        values /= np.sqrt(np.maximum(squares, 1e-12))[rows].astype(np.float32)
        starts = np.searchsorted(rows, np.arange(len(sequences) + 1))
        columns = (places % self.columns).astype(np.int32)
        return csr_matrix((values, columns, starts), shape=(len(sequences), self.columns))

    def set_weights(self, weight: NDArray[Any], bias: NDArray[Any]) -> None:
        """What scikit-learn found; it gives two classes one row, that of the second."""
        found = torch.from_numpy(np.ascontiguousarray(weight)).float(), torch.from_numpy(np.asarray(bias)).float()
        with torch.no_grad():
            for own, new in zip((self.weight, self.bias), found, strict=True):
                own.copy_(torch.stack([torch.zeros_like(new[0]), new[0]]) if len(new) == 1 else new)

    def _ends(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        if self.config.pad is None:
            return np.full(len(rows), rows.shape[1])
        ends: NDArray[np.int64] = np.where(rows != self.config.pad, np.arange(1, rows.shape[1] + 1), 0).max(
            1, initial=0
        )
        return ends

"""Counts of n-grams and one linear layer: what can be predicted without any order beyond a few tokens.

A whole classifier, not a layer. scikit-learn's logistic regression fits its weights; as a module it is saved, loaded
and evaluated like every other model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.nn.pretrained import PretrainedModel

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LONGEST, BITS = 5, 18
_WEIGHTS = 2**22
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Ngrams(PretrainedModel):
    """Computes logits from the counts of all n-grams up to ``window`` tokens, hashed to ``rank`` columns.

    A count c enters as log(1 + c) times the rarity of the column, and the vector of a sequence has norm 1.
    """

    config: BaselineConfig
    model_type: ClassVar = "baseline"
    newer_tensors: ClassVar = frozenset({"rarity"})
    rarity: Tensor

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        if config.vocabulary is None or config.target != "class":
            raise ValueError("n-grams are counted in sequences of tokens that have classes; choose another model")
        self.config = config
        self.longest = config.window or LONGEST
        # Fewer for many classes, so that the weights stay few.
        self.columns = config.rank or 1 << min(BITS, max(1, _WEIGHTS // config.outputs).bit_length() - 1)
        self.register_buffer("rarity", torch.ones(self.columns))
        self.weight = nn.Parameter(torch.zeros(config.outputs, self.columns))
        self.bias = nn.Parameter(torch.zeros(config.outputs))

    def forward(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return logits ``[batch, outputs]`` for token ids ``[batch, length]``, without a gradient."""
        rows = inputs.cpu().numpy()
        ends = self._ends(rows) if lengths is None else np.asarray(lengths)
        counts = self.weigh(self.count_ngrams([row[:end] for row, end in zip(rows, ends, strict=True)]))
        logits: NDArray[np.float32] = counts @ self.weight.detach().cpu().numpy().T
        return torch.from_numpy(np.ascontiguousarray(logits)) + self.bias.detach().cpu()

    def count_ngrams(self, sequences: Sequence[NDArray[Any]]) -> csr_matrix:
        """Return logarithms of counts, ``[sequences, columns]``."""
        from scipy.sparse import csr_matrix

        sizes = np.array([len(sequence) for sequence in sequences], np.int64)
        tokens = np.concatenate([np.asarray(sequence, np.uint64) for sequence in sequences] or [np.empty(0, np.uint64)])
        owner = np.repeat(np.arange(len(sequences)), sizes)
        left = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(tokens))
        codes = []
        with np.errstate(over="ignore"):
            hashes = np.zeros(len(tokens), np.uint64)
            for length in range(1, self.longest + 1):
                # One token longer, wherever that still fits into its sequence.
                ahead = np.concatenate([tokens[length - 1 :], np.zeros(min(length - 1, len(tokens)), np.uint64)])
                hashes = (hashes + ahead + np.uint64(1)) * _MIX
                fits = left >= length
                mixed = (hashes[fits] ^ (hashes[fits] >> np.uint64(29))) * _MIX + np.uint64(length)
                column = (mixed >> np.uint64(20)) % np.uint64(self.columns)
                codes.append(owner[fits] * self.columns + column.astype(np.int64))
        places, counts = np.unique(np.concatenate(codes), return_counts=True)
        values = np.log1p(counts).astype(np.float32)
        rows = places // self.columns
        starts = np.searchsorted(rows, np.arange(len(sequences) + 1))
        columns = (places % self.columns).astype(np.int32)
        return csr_matrix((values, columns, starts), shape=(len(sequences), self.columns))

    def learn_rarity(self, counts: csr_matrix) -> None:
        """Learn from the counts of the training sequences in how few of them each column occurs."""
        occurrences = np.bincount(counts.indices, minlength=self.columns)
        rarity = np.log((1 + counts.shape[0]) / (1 + occurrences)) + 1
        self.rarity.copy_(torch.from_numpy(rarity))

    def weigh(self, counts: csr_matrix) -> csr_matrix:
        """Return counts times rarity, of norm 1 in each row; the counts are overwritten."""
        counts.data *= self.rarity.cpu().numpy()[counts.indices]
        squares = np.zeros(counts.shape[0])
        owner = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        np.add.at(squares, owner, counts.data.astype(np.float64) ** 2)
        counts.data /= np.sqrt(np.maximum(squares, 1e-12))[owner].astype(counts.data.dtype)
        return counts

    @torch.no_grad()
    def set_weights(self, weight: NDArray[Any], bias: NDArray[Any]) -> None:
        """Take the weights of a fit."""
        self.weight.copy_(torch.as_tensor(weight))
        self.bias.copy_(torch.as_tensor(bias))

    def _ends(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        if self.config.pad is None:
            return np.full(len(rows), rows.shape[1])
        ends: NDArray[np.int64] = np.where(rows != self.config.pad, np.arange(1, rows.shape[1] + 1), 0).max(
            1, initial=0
        )
        return ends

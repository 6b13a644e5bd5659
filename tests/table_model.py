"""A Paramixer whose embedding adds a table of n-grams: what tests of saving and training need."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

import paramixer as pm
from paramixer.nn.ngrams import NgramTables
from paramixer.nn.paper import PaperParamixer
from paramixer.nn.sequence_model import Embedded


class TableModel(PaperParamixer):
    """Its table has more rows than the tests touch."""

    def __init__(
        self, config: pm.ParamixerConfig, *, init: str | None = "paper", generator: Generator | None = None
    ) -> None:
        super().__init__(config, init=init, generator=generator)
        assert config.vocabulary is not None
        self.tables = NgramTables(config.vocabulary, config.channels, orders=(1, 2, 3, 4), rows=3000)

    def embed(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Embedded:
        """Return X0 with the n-grams' vectors added."""
        embedded = super().embed(inputs, lengths)
        assert embedded.tokens is not None
        sums, _ = self.tables(embedded.tokens, embedded.lengths)
        return Embedded(embedded.values + sums, embedded.lengths)


def make_model(seed: int = 0, dropout: float = 0.1) -> TableModel:
    """A small one for the tiny task of tests/training."""
    config = pm.ParamixerConfig(
        layer="paper", length=12, vocabulary=6, outputs=4, channels=6, hidden=5, block_dropout=dropout
    )
    return TableModel(config, generator=torch.Generator().manual_seed(seed))

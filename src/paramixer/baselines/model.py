"""BaselineModel: Paramixer's embedding and head around the layers of a baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.nn.embedding import EmbeddingModel
from paramixer.nn.init import draw_inputs_
from paramixer.nn.sequence_model import Embedded


class BaselineModel(EmbeddingModel):
    """A sequence model whose blocks are the layers of a baseline, each called with values and lengths.

    Parameters are drawn in the order embedding, positions, layers, head.

    Args:
        config: what to build.
        make_layer: builds one layer; it draws from torch's global generator, as packages do.
        generator: where parameters are drawn from; torch's global generator by default.
        embedding_bound: token embeddings are uniform within this bound; None for standard normal.
    """

    config: BaselineConfig
    model_type: ClassVar = "baseline"

    def __init__(
        self,
        config: BaselineConfig,
        make_layer: Callable[[BaselineConfig], nn.Module],
        *,
        generator: Generator | None = None,
        embedding_bound: float | None = None,
    ) -> None:
        super().__init__(config)
        draw_inputs_(self.embedding, self.positions, generator, embedding_bound)
        if generator is None:
            self.blocks.extend(make_layer(config) for _ in range(config.blocks))
        else:
            # Packages draw from torch's global generator; it is seeded for them, and restored.
            seed = int(torch.randint(2**62, (), generator=generator))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.blocks.extend(make_layer(config) for _ in range(config.blocks))
        self.head.reset_parameters(generator)

    def mix(self, embedded: Embedded) -> Tensor:
        """Return X0 after all layers, ``[batch, length, channels]``."""
        values: Tensor = self.dropout(embedded.values)
        for layer in self.blocks:
            values = layer(values, embedded.lengths)
        return values

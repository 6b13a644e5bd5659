"""X0 of the paper's network and the baselines: embedded tokens or projected numbers, plus a table of positions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paramixer.nn.config import SequenceConfig
from paramixer.nn.init import UndrawnLinear, skip_draws
from paramixer.nn.inputs import check_inputs, pad_inputs
from paramixer.nn.pooling import Head
from paramixer.nn.sequence_model import Embedded, SequenceModel
from paramixer.ops.dropout import Dropout
from paramixer.ops.lookup import Embedding


class EmbeddingModel(SequenceModel):
    """Embedding and positions, mixing blocks, pooling and a linear layer.

    The parameters of embedding, positions and head are left undrawn: a subclass adds its blocks and initializes
    everything.
    """

    config: SequenceConfig

    def __init__(self, config: SequenceConfig) -> None:
        # Not super(): the paper's network is also a Paramixer, whose constructor builds the default network.
        nn.Module.__init__(self)
        self.config = config
        self.embedding = make_embedding(config)
        self.positions = make_table(config.length, config.channels) if config.positions else None
        self.dropout = Dropout(config.embedding_dropout)
        self.blocks = nn.ModuleList()
        with skip_draws():
            self.head = Head(config.length, config.channels, config.pooling, config.target, config.outputs)

    def embed(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Embedded:
        """Check and pad inputs and return X0. Arguments as for :meth:`forward`."""
        check_inputs(self.config, inputs, self.head.linear.weight.dtype)
        inputs, counts = pad_inputs(self.config, inputs, lengths)
        values: Tensor = self.dropout(embed(inputs, self.embedding, self.positions))
        return Embedded(values, counts, inputs if self.config.vocabulary is not None else None)

    def pool(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return what the head's linear layer reads."""
        pooled: Tensor = self.head.pooling(mixed, embedded.lengths)
        return pooled

    def answer(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return the head's answer to mixed values: logits or values."""
        answer: Tensor = self.head(mixed, embedded.lengths)
        return answer


def make_embedding(config: SequenceConfig) -> nn.Module:
    """Return a table of token embeddings, or a linear layer for numbers, with parameters that are not drawn."""
    if config.vocabulary is not None:
        return make_table(config.vocabulary, config.channels, config.pad)
    assert config.features is not None
    return UndrawnLinear(config.features, config.channels)


def embed(inputs: Tensor, embedding: nn.Module, positions: Embedding | None) -> Tensor:
    """Return the embedded inputs with their positions, ``[batch, length, channels]``."""
    embedded: Tensor = embedding(inputs)
    if positions is None:
        return embedded
    rows = positions.weight[: inputs.shape[1]]
    # In place where the rows are a fresh copy of the table's; what a linear layer returns is a view.
    return embedded.add_(rows) if isinstance(embedding, Embedding) else embedded + rows


def make_table(rows: int, channels: int, pad: int | None = None) -> Embedding:
    """Return a table whose parameters are not drawn; the row of pad gets no gradient."""
    # nn.Embedding's constructor draws; from_pretrained does not.
    weight = torch.empty(rows, channels)
    table: Embedding = Embedding.from_pretrained(weight, freeze=False, padding_idx=pad)  # type: ignore[no-untyped-call]
    return table

"""X0, what blocks read: embedded tokens or projected numbers, plus a learned table of positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paramixer.nn.config import SequenceConfig
from paramixer.nn.init import UndrawnLinear
from paramixer.ops.lookup import Embedding


def make_embedding(config: SequenceConfig) -> nn.Module:
    """Return a table of token embeddings, or a linear layer for numbers, with parameters that are not drawn."""
    if config.vocabulary is not None:
        return _make_table(config.vocabulary, config.channels, config.pad)
    assert config.features is not None
    return UndrawnLinear(config.features, config.channels)


def make_positions(config: SequenceConfig) -> Embedding | None:
    """Return the table of positions, not drawn, or None if the config has none."""
    return _make_table(config.length, config.channels, None) if config.positions else None


def embed(inputs: Tensor, embedding: nn.Module, positions: Embedding | None) -> Tensor:
    """Return the embedded inputs with their positions, ``[batch, length, channels]``."""
    embedded: Tensor = embedding(inputs)
    if positions is None:
        return embedded
    rows = positions.weight[: inputs.shape[1]]
    # In place where the rows are a fresh copy of the table's; what a linear layer returns is a view.
    return embedded.add_(rows) if isinstance(embedding, Embedding) else embedded + rows


def _make_table(rows: int, channels: int, pad: int | None) -> Embedding:
    # nn.Embedding's constructor draws; from_pretrained does not.
    weight = torch.empty(rows, channels)
    table: Embedding = Embedding.from_pretrained(weight, freeze=False, padding_idx=pad)  # type: ignore[no-untyped-call]
    return table

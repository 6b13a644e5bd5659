"""X0, what blocks read: embedded tokens or projected numbers, plus a learned table of positions."""

from __future__ import annotations

from torch import Tensor, nn

from paramixer.nn.config import SequenceConfig
from paramixer.ops.lookup import Embedding


def make_embedding(config: SequenceConfig) -> nn.Module:
    """Return a table of token embeddings, or a linear layer for numbers, drawn as torch draws them."""
    if config.vocabulary is not None:
        return Embedding(config.vocabulary, config.channels, config.pad)
    assert config.features is not None
    return nn.Linear(config.features, config.channels)


def make_positions(config: SequenceConfig) -> Embedding | None:
    """Return the table of positions, or None if the config has none."""
    return Embedding(config.length, config.channels) if config.positions else None


def embed(inputs: Tensor, embedding: nn.Module, positions: Embedding | None) -> Tensor:
    """Return the embedded inputs with their positions, ``[batch, length, channels]``."""
    embedded: Tensor = embedding(inputs)
    if positions is None:
        return embedded
    rows = positions.weight[: inputs.shape[1]]
    # In place where the rows are a fresh copy of the table's; what a linear layer returns is a view.
    return embedded.add_(rows) if isinstance(embedding, Embedding) else embedded + rows

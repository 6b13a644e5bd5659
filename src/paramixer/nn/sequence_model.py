"""SequenceModel: what Paramixer and the baselines have in common, for code that trains or explains either."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from paramixer.nn.config import SequenceConfig
from paramixer.nn.embedding import embed, make_embedding, make_positions
from paramixer.nn.init import skip_draws
from paramixer.nn.inputs import check_inputs, pad_inputs
from paramixer.nn.pooling import Head
from paramixer.nn.pretrained import PretrainedModel
from paramixer.ops.dropout import Dropout


class Embedded(NamedTuple):
    """A batch after :meth:`SequenceModel.embed`: checked, padded and embedded."""

    values: Tensor
    """X0, ``[batch, length, channels]``."""
    lengths: Tensor | None = None
    """How many positions of each sequence count, ``[batch]``; None if all do."""
    tokens: Tensor | None = None
    """The padded token ids that values were looked up for; leave it out with values of your own."""


class SequenceModel(PretrainedModel):
    """Embedding and positions, mixing blocks, pooling and a linear layer.

    ``forward`` is ``embed``, ``mix`` and ``answer`` in turn. The parameters of embedding, positions and head are left
    undrawn: a subclass adds its blocks and initializes everything.
    """

    config: SequenceConfig

    def __init__(self, config: SequenceConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = make_embedding(config)
        self.positions = make_positions(config)
        self.dropout = Dropout(config.embedding_dropout)
        self.blocks = nn.ModuleList()
        with skip_draws():
            self.head = Head(config.length, config.channels, config.pooling, config.target, config.outputs)

    def forward(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return logits or values for a batch of sequences.

        Args:
            inputs: token ids ``[batch, length]``, or real vectors ``[batch, length, features]``.
            lengths: ``[batch]``, how many positions of each sequence count; what is past them does not. By default
                all of them; with ``padding="length"`` and a pad id, trailing PADs do not count.

        Returns:
            ``[batch, outputs]``; ``[batch, length, outputs]`` with pooling "token"; without the last axis for a single
            value.
        """
        embedded = self.embed(inputs, lengths)
        answer = self.answer(self.mix(embedded), embedded.lengths)
        return answer[:, : inputs.shape[1]] if self.config.pooling == "token" else answer

    def features(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return what the head's linear layer reads.

        Its shape is ``[batch, channels]``; with pooling "flat" ``[batch, N * channels]``, with "token"
        ``[batch, length, channels]``. Arguments as for :meth:`forward`.
        """
        embedded = self.embed(inputs, lengths)
        pooled: Tensor = self.head.pooling(self.mix(embedded), embedded.lengths)
        return pooled[:, : inputs.shape[1]] if self.config.pooling == "token" else pooled

    def embed(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Embedded:
        """Check and pad inputs and return X0. Arguments as for :meth:`forward`."""
        check_inputs(self.config, inputs, self.head.linear.weight.dtype)
        inputs, counts = pad_inputs(self.config, inputs, lengths)
        values: Tensor = self.dropout(embed(inputs, self.embedding, self.positions))
        return Embedded(values, counts, inputs if self.config.vocabulary is not None else None)

    @abstractmethod
    def mix(self, embedded: Embedded) -> Tensor:
        """Return X0 after all blocks, ``[batch, length, channels]``."""

    def answer(self, mixed: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the head's answer to mixed values: logits or values."""
        answer: Tensor = self.head(mixed, lengths)
        return answer

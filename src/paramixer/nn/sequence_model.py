"""SequenceModel: what Paramixer and the baselines have in common, for code that trains or explains either."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from paramixer.nn.pretrained import PretrainedModel


class Embedded(NamedTuple):
    """A batch after :meth:`SequenceModel.embed`: checked, padded and embedded."""

    values: Tensor
    """X0, ``[batch, length, channels]``."""
    lengths: Tensor | None = None
    """How many positions of each sequence count, ``[batch]``; None if all do."""
    tokens: Tensor | None = None
    """The padded token ids that values were looked up for; leave it out with values of your own."""
    bag: Tensor | None = None
    """What the head reads directly, ``[batch, width]``: a weighted sum of the n-grams' vectors, where there are any."""


class SequenceModel(PretrainedModel):
    """A model whose ``forward`` is ``embed``, ``mix`` and ``answer`` in turn."""

    blocks: nn.ModuleList
    window: int = 1
    """How many positions of the input one position of X0 stands for."""

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
        answer = self.answer(self.mix(embedded), embedded)
        return answer[:, : inputs.shape[1]] if self.config.pooling == "token" else answer

    def features(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return what the last linear layer reads.

        Its shape is ``[batch, features]``; with pooling "token" ``[batch, length, channels]``. Arguments as for
        :meth:`forward`.
        """
        embedded = self.embed(inputs, lengths)
        pooled = self.pool(self.mix(embedded), embedded)
        return pooled[:, : inputs.shape[1]] if self.config.pooling == "token" else pooled

    @abstractmethod
    def embed(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Embedded:
        """Check and pad inputs and return X0. Arguments as for :meth:`forward`."""

    @abstractmethod
    def mix(self, embedded: Embedded) -> Tensor:
        """Return X0 after all blocks, ``[batch, length, channels]``."""

    @abstractmethod
    def pool(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return what the last linear layer reads."""

    @abstractmethod
    def answer(self, mixed: Tensor, embedded: Embedded) -> Tensor:
        """Return the answer to mixed values: logits or values."""

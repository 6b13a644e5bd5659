"""From mixed values to an answer: a pooling, then one linear layer."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.nn import init
from paramixer.ops.chain import compute_dtype


class Pooling(nn.Module):
    """Turns values ``[batch, length, channels]``, zero past a sequence's length, into what the linear layer reads."""

    def __init__(self, length: int, channels: int) -> None:
        super().__init__()
        self.length, self.width = length, channels

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return pooled values ``[batch, width]``, or ``[batch, length, width]`` if every position has an answer."""
        raise NotImplementedError


class Flat(Pooling):
    """Reads every number of every position, with zeros past the end of a shorter sequence."""

    def __init__(self, length: int, channels: int) -> None:
        super().__init__(length, channels)
        self.width = length * channels

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, length * channels]``."""
        missing = self.length - values.shape[1]
        # Padding by nothing would still copy.
        return (F.pad(values, (0, 0, 0, missing)) if missing else values).flatten(1)


class Cls(Pooling):
    """Reads position 0, where the data puts a CLS token."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, channels]``."""
        return values[:, 0]


class Mean(Pooling):
    """Reads the mean over the sequence's own positions."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, channels]``."""
        if lengths is None:
            return values.mean(1)
        # Half precision holds neither long sums nor long lengths.
        total = values.sum(1, dtype=compute_dtype(values.dtype))
        return (total / lengths.clamp(min=1)[:, None]).to(values.dtype)


class Token(Pooling):
    """No pooling: every position gets an answer of its own."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, length, channels]``."""
        return values


POOLINGS: dict[str, type[Pooling]] = {"flat": Flat, "cls": Cls, "mean": Mean, "token": Token}


class Head(nn.Module):
    """Pooling and one linear layer; a single regression value comes without its last axis.

    Args:
        length: the longest sequence.
        channels: width of the values.
        pooling: "flat", "cls", "mean", or "token" for an answer at every position.
        target: "class" for the logits of classes, "value" for real numbers.
        outputs: how many classes or values.
        generator: where the initial parameters are drawn from.
    """

    def __init__(
        self, length: int, channels: int, pooling: str, target: str, outputs: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.pooling = POOLINGS[pooling](length, channels)
        self.linear = init.UndrawnLinear(self.pooling.width, outputs)
        self.squeeze = target == "value" and outputs == 1
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw weight, then bias, as torch draws linear layers."""
        init.draw_linear_(self.linear, generator)

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return ``[batch, outputs]``; ``[batch, length, outputs]`` for tokens; ``[batch]`` for a single value."""
        answer: Tensor = self.linear(self.pooling(values, lengths))
        return answer.squeeze(-1) if self.squeeze else answer

"""Poolings: from values at every position to one vector for the sequence.

The default network reads several at once, ``mean+max+attention+templates``; the paper's reads one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.nn import init
from paramixer.ops.chain import compute_dtype
from paramixer.ops.checks import past_end

# How many learned poolings of a kind there are, and how finely templates tell positions apart.
_COUNT, _KNOTS = 4, 256


class Pooling(nn.Module, ABC):
    """Turns values ``[batch, length, channels]``, zero past a sequence's length, into what the linear layer reads."""

    def __init__(self, length: int, channels: int) -> None:
        super().__init__()
        self.length, self.width = length, channels

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the parameters, where there are any."""

    @abstractmethod
    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return pooled values ``[batch, width]``, or ``[batch, length, width]`` if every position has an answer."""


class Flat(Pooling):
    """Reads every number of every position, with zeros past the end of a shorter sequence."""

    def __init__(self, length: int, channels: int) -> None:
        super().__init__(length, channels)
        self.width = length * channels

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, length * channels]``."""
        missing = self.length - values.shape[1]
        # Padding by nothing would still copy; a traced graph pads always, as it serves every length.
        padded = F.pad(values, (0, 0, 0, missing)) if torch.compiler.is_compiling() or missing else values
        return padded.flatten(1)


class Cls(Pooling):
    """Reads position 0, where the data puts a CLS token."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, channels]``."""
        return values[:, 0]


class Mean(Pooling):
    """Reads the mean over the sequence's own positions."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, channels]``."""
        return mean_over_positions(values, lengths)


class Max(Pooling):
    """Reads the largest value of every channel; zero for an empty sequence."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, channels]``."""
        if lengths is None:
            return values.amax(1)
        largest = values.masked_fill(past_end(lengths, values.shape[1])[..., None], -math.inf).amax(1)
        return largest.masked_fill((lengths == 0)[:, None], 0)


class Attention(Pooling):
    """Reads weighted means whose weights are a softmax over positions of learned scores, from soft to sharp."""

    def __init__(self, length: int, channels: int) -> None:
        super().__init__(length, channels)
        self.width = _COUNT * channels
        self.score = init.UndrawnLinear(channels, _COUNT)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw scores of which each is twice as sharp as the one before."""
        init.draw_normal_(self.score, generator)
        with torch.no_grad():
            self.score.weight.mul_(2.0 ** torch.arange(_COUNT)[:, None])

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, count * channels]``."""
        scores = self.score(values)
        if lengths is not None:
            # Not minus infinity: an empty sequence would have no weights at all.
            scores = scores.masked_fill(past_end(lengths, values.shape[1])[..., None], -1e4)
        pooled = torch.bmm(scores.softmax(1).mT, values)
        return pooled.flatten(1)


class Templates(Pooling):
    """Reads sums over positions, weighted by learned functions of the position for every channel.

    A FLAT head of low rank. The functions start as cosines of one, two, ... half turns from the first to the last
    position, so that what is learned at one position holds for its neighbors. They are interpolated between at most 256
    knots: a longer sequence has no more to learn.
    """

    def __init__(self, length: int, channels: int) -> None:
        super().__init__(length, channels)
        self.width = _COUNT * channels
        self.knots = min(max(length, 2), _KNOTS)
        self.weight = nn.Parameter(torch.empty(_COUNT, self.knots, channels))

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Set the weights to cosines; nothing is drawn."""
        places = (torch.arange(self.knots) + 0.5) / self.knots
        waves = math.sqrt(2) * torch.cos(math.pi * torch.arange(1, _COUNT + 1)[:, None] * places)
        with torch.no_grad():
            self.weight.copy_(waves[..., None].expand_as(self.weight))

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, count * channels]``."""
        weights = self.at_positions(values.shape[1]).to(values.dtype)
        # No matrix product, which rounds differently for other batch sizes: a sequence has the same answer whichever
        # others share its batch.
        pooled = torch.stack([(values * weight).sum(1) for weight in weights], 1)
        return pooled.flatten(1) / math.sqrt(self.length)

    def at_positions(self, width: int) -> Tensor:
        """Return the functions at the first positions, ``[count, width, channels]``."""
        steps = torch.arange(width, device=self.weight.device)
        places = steps * ((self.knots - 1) / max(self.length - 1, 1))
        left = places.floor().long().clamp(max=self.knots - 2)
        share = (places - left)[:, None].to(self.weight.dtype)
        return torch.lerp(self.weight[:, left], self.weight[:, left + 1], share)


class Token(Pooling):
    """No pooling: every position gets an answer of its own."""

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return ``[batch, length, channels]``."""
        return values


POOLINGS: dict[str, type[Pooling]] = {
    "flat": Flat,
    "cls": Cls,
    "mean": Mean,
    "max": Max,
    "attention": Attention,
    "templates": Templates,
    "token": Token,
}


class Poolings(Pooling):
    """Several poolings side by side, such as ``mean+max``."""

    def __init__(self, names: str, length: int, channels: int) -> None:
        super().__init__(length, channels)
        self.parts = nn.ModuleList(POOLINGS[name](length, channels) for name in names.split("+"))
        self.widths = [part.width for part in self.parts if isinstance(part, Pooling)]
        self.width = sum(self.widths)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the parameters of all parts."""
        for part in self.parts:
            assert isinstance(part, Pooling)
            part.reset_parameters(generator)

    def forward(self, values: Tensor, lengths: Tensor | None) -> Tensor:
        """Return what the parts read, one after another."""
        return torch.cat([part(values, lengths) for part in self.parts], -1)


def mean_over_positions(values: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the mean over the positions of each sequence; values ``[batch, length, channels]`` are zero past them."""
    if lengths is None:
        return values.mean(1)
    # Half precision holds neither long sums nor long lengths.
    total = values.sum(1, dtype=compute_dtype(values.dtype))
    return (total / lengths.clamp(min=1)[:, None]).to(values.dtype)


class Standardize(nn.Module):
    """Centers and scales every feature by its mean and deviation over training so far, in training as in use.

    Poolings differ in scale by orders of magnitude: one marked position of a thousand moves a mean by a thousandth.
    Unlike batch normalization it treats a sequence alike whichever others share its batch, and gives no other answers
    in use than in training. Features come in groups, one for each pooling; a group of many gets a smaller scale, so
    that no pooling outweighs another by its width.

    Args:
        widths: of the groups.
        factors: what each group is multiplied with besides; 1 by default.
    """

    mean: Tensor
    variance: Tensor
    batches: Tensor
    scale: Tensor

    _EPSILON, _LARGEST = 1e-8, 8.0
    # The width of a group whose features keep deviation one. The sum of w features that know nothing of each other has
    # deviation sqrt(w), so that groups of any width move an answer alike.
    _GROUP = 16

    def __init__(self, widths: Sequence[int], factors: Sequence[float] | None = None) -> None:
        super().__init__()
        factors = factors or [1.0] * len(widths)
        scales = [factor * (self._GROUP / width) ** 0.5 for width, factor in zip(widths, factors, strict=True)]
        # It follows from the config, so that no file needs it, and a model that waits for its file has it.
        counts = torch.tensor(widths, device="cpu")
        scale = torch.tensor(scales, device="cpu").repeat_interleave(counts)
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("mean", torch.zeros(sum(widths)))
        self.register_buffer("variance", torch.ones(sum(widths)))
        self.register_buffer("batches", torch.zeros(()))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Forget the statistics."""
        self.mean.zero_()
        self.variance.fill_(1)
        self.batches.zero_()

    @torch.no_grad()
    def observe(self, features: Tensor) -> None:
        """Take a batch of features ``[batch, width]`` into the statistics; all batches count alike.

        With a fixed rate they would follow the drift of the features at a distance, and catch up when the learning rate
        has fallen to zero and nothing else can follow: the answers would shift at the very end.
        """
        self.batches += 1
        rate = 1 / self.batches
        seen = features.detach().to(self.mean.dtype)
        self.mean.lerp_(seen.mean(0), rate)
        self.variance.lerp_((seen - self.mean).square().mean(0), rate)

    def forward(self, features: Tensor) -> Tensor:
        """Return standardized features ``[batch, width]``."""
        if self.training:
            self.observe(features)
        scaled = ((features - self.mean) * (self.variance + self._EPSILON).rsqrt()).clamp(-self._LARGEST, self._LARGEST)
        return (scaled * self.scale).to(features.dtype)


class Head(nn.Module):
    """Pooling and one linear layer; a single regression value comes without its last axis.

    Args:
        length: the longest sequence.
        channels: width of the values.
        pooling: names of poolings, joined by +.
        target: "class" for the logits of classes, "value" for real numbers.
        outputs: how many classes or values.
        generator: where the initial parameters are drawn from.
    """

    def __init__(
        self, length: int, channels: int, pooling: str, target: str, outputs: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.pooling = Poolings(pooling, length, channels) if "+" in pooling else POOLINGS[pooling](length, channels)
        self.linear = init.UndrawnLinear(self.pooling.width, outputs)
        self.squeeze = target == "value" and outputs == 1
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw weight, then bias, as torch draws linear layers; then the pooling."""
        init.draw_linear_(self.linear, generator)
        self.pooling.reset_parameters(generator)

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return ``[batch, outputs]``; ``[batch, length, outputs]`` for tokens; ``[batch]`` for a single value."""
        answer: Tensor = self.linear(self.pooling(values, lengths))
        return answer.squeeze(-1) if self.squeeze else answer

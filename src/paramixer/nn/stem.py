"""Stems: what stands at each position, before anything is mixed.

A stem looks at a position and its nearest neighbors only. Symbols have an embedding and, for texts and DNA, tables of
the n-grams that end there. Numbers are standardized by the training data and given twice, clipped and log-compressed:
what is rare stands out but does not drown the rest. Ordered ids, such as shades of gray, are numbers too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.nn import init
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.embedding import make_table
from paramixer.nn.ngrams import NgramTables
from paramixer.ops.checks import past_end

# Numbers of a position and so many neighbors make its row.
_TAPS = 5
# Standardized numbers are clipped here.
_LARGEST = 4.0
# An ordered id is also given as so many cosines of its share of the largest id.
_WAVES = 4
# Widths of the n-gram tables (one cache line) and, at least, of a position inside a window.
_NGRAM_WIDTH, _LEAST_WIDTH = 16, 16

Batches = Iterable[tuple[Tensor, Tensor | None]]
"""Inputs ``[batch, length]`` or ``[batch, length, features]`` with lengths ``[batch]`` or None."""


class SymbolStem(nn.Module):
    """An embedding for each symbol and, if the config has n-grams, a vector for those that end at a position."""

    def __init__(self, config: ParamixerConfig, width: int) -> None:
        super().__init__()
        assert config.vocabulary is not None
        self.embedding = make_table(config.vocabulary, width, config.pad)
        self.ngrams: NgramTables | None = None
        if config.ngrams > 1:
            orders = range(2, config.ngrams + 1)
            self.ngrams = NgramTables(
                config.vocabulary,
                _NGRAM_WIDTH,
                orders,
                config.ngram_rows,
                config.ngram_dropout,
                config.words,
                config.letters if config.words else None,
            )
            self.widen = init.UndrawnLinear(_NGRAM_WIDTH, width, bias=False)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw standard normal embeddings; the tables of n-grams start at zero."""
        init.draw_tokens_(self.embedding, generator)
        if self.ngrams is not None:
            self.ngrams.reset_parameters()
            init.draw_normal_(self.widen, generator)

    def observe(self, batches: Batches) -> None:
        """Count the n-grams of the training data: how rare each is; those of a single sequence are left out."""
        if self.ngrams is not None:
            self.ngrams.count(batches)

    def forward(self, tokens: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return ``[batch, length, width]`` for ids ``[batch, length]``, and the bag of n-grams."""
        rows: Tensor = self.embedding(tokens)
        if self.ngrams is None:
            return rows, None
        sums, bag = self.ngrams(tokens, lengths)
        return rows + self.widen(sums), bag


class NumberStem(nn.Module):
    """A linear layer over the standardized numbers of a position and its neighbors."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: ParamixerConfig, width: int) -> None:
        super().__init__()
        count = config.features or 1
        self.register_buffer("mean", torch.zeros(count))
        self.register_buffer("std", torch.ones(count))
        self.linear = init.UndrawnLinear(_TAPS * self.numbers(count), width)

    @staticmethod
    def numbers(features: int) -> int:
        """Return how many numbers stand for these features of a position."""
        return 2 * features

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the linear layer."""
        init.draw_normal_(self.linear, generator)

    @torch.no_grad()
    def observe(self, batches: Batches) -> None:
        """Learn mean and standard deviation of every feature from training data."""
        count, total, squares = 0.0, torch.zeros_like(self.mean).double(), torch.zeros_like(self.std).double()
        for inputs, lengths in batches:
            numbers = self.as_numbers(inputs).double()
            rows = numbers.flatten(0, 1) if lengths is None else numbers[~past_end(lengths, numbers.shape[1])]
            count += len(rows)
            total += rows.sum(0)
            squares += rows.square().sum(0)
        if count:
            mean = total / count
            variance = (squares / count - mean.square()).clamp(min=0)
            self.mean.copy_(mean)
            # A constant feature says nothing, whatever it is divided by.
            self.std.copy_(torch.where(variance > 1e-12 * mean.square(), variance, 1.0).sqrt())

    def as_numbers(self, inputs: Tensor) -> Tensor:
        """Return inputs as numbers ``[batch, length, features]``."""
        return inputs

    def describe(self, numbers: Tensor) -> list[Tensor]:
        """Return what the linear layer reads of each position, ``[batch, length, features]`` each."""
        z = (numbers - self.mean) / self.std
        return [z.clamp(-_LARGEST, _LARGEST), z.sign() * z.abs().log1p()]

    def forward(self, inputs: Tensor, lengths: Tensor | None) -> tuple[Tensor, None]:
        """Return ``[batch, length, width]``; beyond the ends of a sequence stand zeros."""
        described = torch.cat(self.describe(self.as_numbers(inputs).to(self.mean.dtype)), -1)
        if lengths is not None:
            described = described.masked_fill(past_end(lengths, inputs.shape[1])[..., None], 0)
        beside = _TAPS // 2
        taps = F.pad(described, (0, 0, beside, beside)).unfold(1, _TAPS, 1).flatten(2)
        rows: Tensor = self.linear(taps)
        return rows, None


class OrderedStem(NumberStem):
    """Ids whose order means something, such as shades of gray, as numbers and as smooth waves of them."""

    def __init__(self, config: ParamixerConfig, width: int) -> None:
        super().__init__(config, width)
        assert config.vocabulary is not None
        self.largest = max(config.vocabulary - 1, 1)

    @staticmethod
    def numbers(features: int) -> int:
        """Return how many numbers stand for an id."""
        return 2 + _WAVES

    def as_numbers(self, inputs: Tensor) -> Tensor:
        """Return ids ``[batch, length]`` as numbers ``[batch, length, 1]``."""
        return inputs[..., None].to(self.mean.dtype)

    def describe(self, numbers: Tensor) -> list[Tensor]:
        """Return what the linear layer reads of each position."""
        waves = [torch.cos(math.pi * k * numbers / self.largest) for k in range(1, _WAVES + 1)]
        return [*super().describe(numbers), *waves]


class Stem(nn.Module):
    """The stem of a network: the kind that the config's input needs, and windows of several positions.

    Args:
        config: of the network.
    """

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        self.window, width = config.window, config.channels
        inner = width if self.window == 1 else max(_LEAST_WIDTH, width // 2)
        kind = NumberStem if config.vocabulary is None else OrderedStem if config.ordered_ids else SymbolStem
        self.rows = kind(config, inner)
        self.bag_width = _NGRAM_WIDTH if config.ngrams > 1 else 0
        if self.window > 1:
            self.join = init.UndrawnLinear(self.window * inner, width)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the parameters."""
        self.rows.reset_parameters(generator)
        if self.window > 1:
            init.draw_normal_(self.join, generator)

    def observe(self, batches: Batches) -> None:
        """Learn from training sequences what no gradient tells: the scale of numbers, and which n-grams occur."""
        self.rows.observe(batches)

    def bag_shares(self, inputs: Tensor, lengths: Tensor | None) -> Tensor | None:
        """Return what every window adds to the bag of n-grams, ``[batch, windows, width]``; None without n-grams."""
        if not isinstance(self.rows, SymbolStem) or self.rows.ngrams is None:
            return None
        shares = self.rows.ngrams.bag_shares(inputs, lengths)
        shares = F.pad(shares, (0, 0, 0, -shares.shape[1] % self.window))
        return shares.view(len(shares), -1, self.window, shares.shape[2]).sum(2)

    def count_windows(self, lengths: Tensor | None) -> Tensor | None:
        """Return how many windows sequences of these lengths fill; the last one may be filled up with zeros."""
        return None if lengths is None else (lengths + self.window - 1) // self.window

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return ``[batch, windows, channels]``, zero past the end of a sequence, and a bag of n-grams.

        The bag ``[batch, bag_width]`` is None where there are no n-grams.
        """
        rows, bag = self.rows(inputs, lengths)
        if lengths is not None:
            rows = rows.masked_fill(past_end(lengths, rows.shape[1])[..., None], 0)
        if self.window == 1:
            return rows, bag
        # Rounded up without a negative number: ONNX divides those toward zero.
        count = (rows.shape[1] + self.window - 1) // self.window
        missing = count * self.window - rows.shape[1]
        # A traced graph pads always: it serves every length.
        if torch.compiler.is_compiling() or missing:
            rows = F.pad(rows, (0, 0, 0, missing))
        joined: Tensor = self.join(rows.reshape(rows.shape[0], count, self.window * rows.shape[2]))
        if lengths is not None:
            windows = self.count_windows(lengths)
            assert windows is not None
            joined = joined.masked_fill(past_end(windows, joined.shape[1])[..., None], 0)
        return joined, bag

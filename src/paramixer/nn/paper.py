"""The paper's network: embedding and positions, a stack of blocks, a head."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Generator, Tensor

from paramixer.nn.block import ParamixerBlock
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.embedding import EmbeddingModel
from paramixer.nn.init import initialize, skip_draws
from paramixer.nn.model import Paramixer
from paramixer.nn.sequence_model import Embedded
from paramixer.ops.chain import count_checkpoints

# Links are computed once per distinct row of X0 if at least so many positions share a row, on average,
_SHARED = 2
# and if there are at most so many pairs of token and position per position, among which rows are looked for.
_SPARSE = 32


class DistinctRows(NamedTuple):
    """The distinct rows of X0."""

    table: Tensor
    """``[rows, channels]``."""
    row_ids: Tensor
    """``[batch, length]``, the row of the table that each position has."""


class PaperParamixer(EmbeddingModel, Paramixer):
    """The network of the paper, ``layer="paper"``; see :class:`paramixer.Paramixer` for the arguments."""

    config: ParamixerConfig

    def __init__(
        self, config: ParamixerConfig, *, init: str | None = "paper", generator: Generator | None = None
    ) -> None:
        super().__init__(config)
        with skip_draws():
            self.blocks.extend(make_block(config) for _ in range(config.blocks))
        if init is not None:
            initialize(self, init, generator)

    def observe(self, batches: Iterable[tuple[Tensor, Tensor | None]], targets: Tensor | None = None) -> None:
        """Learn nothing: the paper's network has only parameters."""

    def paramixer_blocks(self) -> list[ParamixerBlock]:  # type: ignore[override]
        """Return the blocks as a list with their own type."""
        return cast(list[ParamixerBlock], list(self.blocks))

    def mix(self, embedded: Embedded) -> Tensor:
        """Return X0 after all blocks, ``[batch, length, channels]``; links of equal rows of X0 are computed once."""
        values: Tensor = self.dropout(embedded.values)
        distinct = None if embedded.tokens is None else self.distinct_rows(embedded.tokens)
        for block in self.blocks:
            if distinct is not None:
                values = block(values, distinct.table, embedded.lengths, distinct.row_ids)
            else:
                inputs = embedded.values if self.config.link_input == "first" else values
                values = block(values, inputs, embedded.lengths)
        return values

    @torch.no_grad()
    def link_inputs(self, embedded: Embedded) -> list[Tensor]:
        """Return what the link MLPs of each block read, ``[batch, length, channels]`` for each block."""
        if self.config.link_input == "first":
            return [embedded.values] * len(self.blocks)
        inputs = []
        values = embedded.values
        for block in self.blocks:
            inputs.append(values)
            values = block(values, values, embedded.lengths)
        return inputs

    def distinct_rows(self, tokens: Tensor) -> DistinctRows | None:
        """Return the distinct rows of X0, or None where computing links once per row would not pay."""
        config = self.config
        if (
            config.link_input != "first"
            or config.vocabulary is None
            or (self.dropout.training and self.dropout.p)
            # Only the CPU backend profits, and the number of rows is unknown when graphs are compiled.
            or tokens.device.type != "cpu"
            or torch.compiler.is_compiling()
            # A hook on the embedding expects all of its gradient in the rows of the tokens.
            or self.embedding._forward_hooks
            or self.embedding._forward_pre_hooks
        ):
            return None
        largest = self.max_distinct_rows(tokens.numel())
        if self.positions is None:
            if config.vocabulary > largest:
                return None
            return DistinctRows(self.embedding(torch.arange(config.vocabulary, device=tokens.device)), tokens)
        # With positions a row is a pair of token and position.
        width = tokens.shape[1]
        if width > largest or config.vocabulary * width > _SPARSE * tokens.numel():
            return None
        pairs = tokens.long() * width + torch.arange(width, device=tokens.device)
        occurs = torch.zeros(config.vocabulary * width, dtype=torch.int32, device=tokens.device)
        occurs[pairs] = 1
        rows = occurs.nonzero().flatten()
        if len(rows) > largest:
            return None
        row_ids = occurs.cumsum(0, dtype=torch.int32) - 1
        return DistinctRows(self.embedding(rows // width) + self.positions(rows % width), row_ids[pairs])

    def max_distinct_rows(self, positions: int) -> int:
        """Return the number of distinct rows up to which computing links once per row saves time and little is stored.

        Their links are stored for all factors, which may take at most the memory that a block's backward pass needs.
        """
        offsets = self.paramixer_blocks()[0].offsets
        checkpoints = count_checkpoints(offsets.shape[0], self.config.checkpoint_every) + 1
        return min(positions // _SHARED, positions * self.config.channels * checkpoints // offsets.numel())


def make_block(config: ParamixerConfig) -> ParamixerBlock:
    """Return one block of a config, drawn as the paper does."""
    return ParamixerBlock(
        config.length,
        config.channels,
        config.hidden,
        protocol=config.link_pattern(),
        residual=config.residual,
        ring=config.ring,
        dropout=config.block_dropout,
        checkpoint_every=config.checkpoint_every,
    )

"""Settings of a model as one flat, frozen value, documented field by field and validated where it is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from paramixer.links import LinkPattern, Links, named_pattern
from paramixer.validation import Count, Integer, Probability, settings

ProtocolName = Literal["chord", "cdil", "links"]


def _to_table(table: Any) -> tuple[tuple[int, ...], ...] | None:
    return None if table is None else Links(table).table


Offsets = Annotated[tuple[tuple[int, ...], ...] | None, BeforeValidator(_to_table)]


@settings
class SequenceConfig:
    """What every sequence model has, Paramixer or baseline: its input, its positions, its head.

    Token input has a vocabulary, real-valued input has features.
    """

    length: Count
    """N, the longest sequence, a CLS token included. Offsets, positions and the FLAT head derive from it."""
    outputs: Count
    """Number of classes, or of values to predict."""
    vocabulary: Count | None = None
    """Number of different token ids, PAD and CLS included; None for real-valued input."""
    features: Count | None = None
    """Numbers at each position of a real-valued input; None for tokens."""
    channels: Count = 32
    """E, width of the embedding and of the values."""
    positions: bool = True
    """Whether a learned table of absolute positions is added to the embedding."""
    pooling: Literal["flat", "cls", "mean", "token"] = "flat"
    """What the head reads: all positions, position 0, their mean, or each position for an answer of its own."""
    target: Literal["class", "value"] = "class"
    """Whether the outputs are logits of classes or real values."""
    embedding_dropout: Probability = 0.0
    """Dropout after the embedding, applied once more on the way into the first block."""
    block_dropout: Probability = 0.0
    """Dropout at the end of each block."""
    pad: Integer | None = None
    """The token id that fills up shorter sequences; its embedding is zero and stays zero. None if there is none."""
    padding: Literal["symbol", "length"] = "symbol"
    """How shorter sequences are treated: "symbol" fills them up to the full length with pad, which is a token like any
    other; "length" mixes each on a ring of its own length."""

    @model_validator(mode="after")
    def _check_input(self) -> Self:
        if (self.vocabulary is None) == (self.features is None):
            raise ValueError(
                f"vocabulary={self.vocabulary} and features={self.features}; "
                "give a vocabulary for token input or features for real-valued input, not both"
            )
        if self.pad is not None and not 0 <= self.pad < (self.vocabulary or 0):
            raise ValueError(f"pad={self.pad} is no token id of a vocabulary of {self.vocabulary}; use an id or None")
        return self


@settings
class ParamixerConfig(SequenceConfig):
    """Everything a :class:`Paramixer` is built from."""

    hidden: Count = 32
    """H, width of the hidden layers of the link MLPs and of g."""
    blocks: Count = 1
    """L, how many blocks are stacked."""
    protocol: ProtocolName = "chord"
    """Which positions a factor links: chord, cdil, or links for a table of your own."""
    links: Integer | None = None
    """K, links per position; None for ceil(log2 N) + 1 with chord and 9 with cdil."""
    factors: Integer | None = None
    """M, factors of a chain; None for ceil(log2 N)."""
    table: Offsets = None
    """The offsets, one row per factor, for protocol links."""
    residual: Literal["factor", "block", "none"] = "factor"
    """What each factor adds to its mix: its own input, the block's values after g, or nothing."""
    ring: bool = True
    """Whether links wrap around the ends; without, a link that leaves the sequence contributes nothing."""
    link_input: Literal["first", "block"] = "first"
    """What the link MLPs of each block read: the embedded input X0, or the block's own input."""
    checkpoint_every: Count = 1
    """Training stores the input of every so many factors and recomputes the others: more saves memory, 1 is fastest."""

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        if (self.protocol == "links") != (self.table is not None):
            raise ValueError(
                f"protocol={self.protocol!r} with table={self.table}; protocol 'links' and a table go together"
            )
        self.link_pattern().offsets(self.length)
        return self

    def link_pattern(self) -> LinkPattern:
        """Return the protocol as a value."""
        if self.table is None:
            return named_pattern(self.protocol, self.links, self.factors)
        if self.links is not None or self.factors is not None:
            raise ValueError(f"links={self.links} and factors={self.factors} follow from the table; leave them None")
        return Links(self.table)

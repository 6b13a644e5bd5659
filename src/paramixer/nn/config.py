"""Settings of a model as one flat, frozen value, documented field by field and validated where it is made."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import ArgsKwargs

from paramixer.links import LinkPattern, Links, choose_base, named_pattern
from paramixer.validation import Count, Integer, Probability, settings

ProtocolName = Literal["chord", "cdil", "links"]
POOLINGS = ("flat", "cls", "mean", "max", "attention", "templates", "token")
"""Names of the poolings."""
LEAST_HEAD_CHANNELS = 4
"""A head of fewer channels has nothing left after its norm."""


def _to_table(table: Any) -> tuple[tuple[int, ...], ...] | None:
    return None if table is None else Links(table).table


def _check_pooling(pooling: str) -> str:
    parts = pooling.split("+")
    for name in parts:
        if name not in POOLINGS:
            raise ValueError(f"pooling={pooling!r}; choose from {', '.join(POOLINGS)}, or several such as mean+max")
    if "token" in parts and len(parts) > 1:
        raise ValueError(f"pooling={pooling!r}; token answers at every position and goes with no other")
    if len(set(parts)) < len(parts):
        raise ValueError(f"pooling={pooling!r} names one twice")
    return pooling


PoolingNames = Annotated[str, AfterValidator(_check_pooling)]
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
    """Whether what tells absolute positions is added to the embedding: learned, in the default network from waves."""
    pooling: PoolingNames = "flat"
    """What the head reads: flat all positions, cls position 0, mean, max, attention, templates; or token, an answer at
    each position. Several are joined by +."""
    target: Literal["class", "value"] = "class"
    """Whether the outputs are logits of classes or real values."""
    embedding_dropout: Probability = 0.0
    """Dropout after the embedding; in the paper's network once more on the way into the first block."""
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


# What differs where the layer is the paper's: the defaults, and the settings that only the other network has.
_PAPER_DEFAULTS: dict[str, Any] = {
    "channels": 32,
    "pooling": "flat",
    "padding": "symbol",
    "hidden": 32,
    "blocks": 1,
    "protocol": "chord",
    "ring": True,
}
PRENORM_ONLY = (
    "heads",
    "link_width",
    "window",
    "ngrams",
    "ngram_rows",
    "ngram_dropout",
    "words",
    "letters",
    "ordered_ids",
    "head_dropout",
)
_PAPER_ONLY = ("residual", "link_input")


@settings
class ParamixerConfig(SequenceConfig):
    """Everything a :class:`Paramixer` is built from.

    The defaults are those of the default network. With ``layer="paper"`` they are the paper's: channels 32, pooling
    flat, padding symbol, hidden 32, blocks 1, protocol chord, ring true.
    """

    layer: Literal["prenorm", "paper"] = "prenorm"
    """Which network: the default one of pre-norm layers with heads, or the paper's."""
    channels: Count = 64
    """E, width of the embedding and of the values."""
    pooling: PoolingNames = "mean+max+attention+templates"
    """What the head reads, one or several joined by +: flat all positions, cls position 0, mean, max, attention learned
    softmax weights, templates learned weights of positions; or token, an answer at each position."""
    padding: Literal["symbol", "length"] = "length"
    """How shorter sequences are treated: "symbol" fills them up to the full length with pad, which is a token like any
    other; "length" mixes each at its own length."""
    hidden: Count = 16
    """H, width of the hidden layers of the link MLPs (and of g in the paper's network)."""
    blocks: Count = 2
    """L, how many blocks or layers are stacked."""
    heads: Count | None = None
    """Chains side by side in each layer, which divide the channels; None for 4, or fewer of at least 8 channels."""
    link_width: Count = 16
    """Width of what the link MLPs of a head read."""
    protocol: ProtocolName = "cdil"
    """Which positions a factor links: chord, cdil, or links for a table of your own."""
    links: Integer | None = None
    """K, links per position; None for ceil(log2 N) + 1 with chord and 9 with cdil."""
    factors: Integer | None = None
    """M, factors of a chain; None for as many as reach every position."""
    base: Integer | None = None
    """By how much CDIL's dilations grow from factor to factor; None for 8 (2 in the paper's network, or with fewer than
    8 links)."""
    table: Offsets = None
    """The offsets, one row per factor, for protocol links."""
    residual: Literal["factor", "block", "none"] = "factor"
    """What each factor adds to its mix: its own input, the block's values after g, or nothing."""
    ring: bool = False
    """Whether links wrap around the ends; without, a link that leaves the sequence contributes nothing."""
    link_input: Literal["first", "block"] = "first"
    """What the link MLPs of each block read: the embedded input X0, or the block's own input."""
    checkpoint_every: Count = 1
    """Training stores the input of every so many factors and recomputes the others: more saves memory, 1 is fastest."""
    window: Count = 1
    """Positions that become one before the layers: fewer to mix, each with more to say."""
    ngrams: Annotated[Integer, Field(ge=0)] = 0
    """Longest n-grams of tokens that have vectors in the stem, 2 to 32; 0 for none."""
    ngram_rows: Count = 2**18
    """The most rows of the table of each n-gram length; more n-grams than rows share them by a hash."""
    ngram_dropout: Probability = 0.0
    """Share of the positions whose n-grams are left out of a training step."""
    words: Annotated[Integer, Field(ge=0, le=8)] = 0
    """Longest n-grams of words that have vectors in the stem, too; 0 for none."""
    letters: Annotated[tuple[Annotated[Integer, Field(ge=0)], ...], Field(strict=False)] | None = None
    """For every token id the letter, counted from 1, that it stands for in words; 0 for what separates words."""
    head_dropout: Probability = 0.0
    """Dropout of what the head of a classifier reads; values are predicted without."""
    ordered_ids: bool = False
    """Whether token ids are amounts in order, such as shades of gray: the stem then reads them as numbers."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        if isinstance(data, ArgsKwargs) and (data.kwargs or {}).get("layer") == "paper":
            return ArgsKwargs(data.args, {**_PAPER_DEFAULTS, **(data.kwargs or {})})
        return data

    @model_validator(mode="after")
    def _check_layer(self) -> Self:
        others = PRENORM_ONLY if self.layer == "paper" else _PAPER_ONLY
        for field in dataclasses.fields(self):
            if field.name in others and getattr(self, field.name) != field.default:
                raise ValueError(
                    f"{field.name}={getattr(self, field.name)!r} is not for layer={self.layer!r}; leave it out, "
                    "or take the recipe of that network"
                )
        if self.layer == "prenorm":
            self._check_prenorm()
        return self

    def _check_prenorm(self) -> None:
        if self.channels % self.head_count or self.channels // self.head_count < LEAST_HEAD_CHANNELS:
            raise ValueError(
                f"channels={self.channels} with heads={self.head_count}; a head needs an equal share of at least "
                f"{LEAST_HEAD_CHANNELS} channels"
            )
        if self.vocabulary is None and (self.ngrams or self.ordered_ids):
            raise ValueError("ngrams and ordered_ids are for token input; leave them out")
        if self.ngrams and self.ordered_ids:
            raise ValueError(f"ngrams={self.ngrams} with ordered_ids=True; ids that are amounts have no n-grams")
        if self.ngrams == 1 or self.ngrams > 32:
            raise ValueError(f"ngrams={self.ngrams}; give 2 to 32, or 0 for none")
        if self.words and (not self.ngrams or self.letters is None or len(self.letters) != self.vocabulary):
            given = "none" if self.letters is None else len(self.letters)
            raise ValueError(
                f"words={self.words} with ngrams={self.ngrams}, vocabulary={self.vocabulary} and letters for {given} "
                "of its ids; words need n-grams of tokens and a letter for every id"
            )
        if 1 < self.length <= self.window:
            raise ValueError(
                f"window={self.window} with length={self.length}; choose a window shorter than the sequence"
            )
        if self.pooling == "token" and self.window > 1:
            raise ValueError(f"window={self.window} with pooling='token'; windows have no answer for each position")

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        if (self.protocol == "links") != (self.table is not None):
            raise ValueError(
                f"protocol={self.protocol!r} with table={self.table}; protocol 'links' and a table go together"
            )
        self.link_pattern().offsets(self.mixed_length)
        return self

    @property
    def head_count(self) -> int:
        """The heads of a layer."""
        if self.heads is not None:
            return self.heads
        return next((heads for heads in (4, 3, 2) if self.channels % heads == 0 and self.channels >= 8 * heads), 1)

    @property
    def mixed_length(self) -> int:
        """How many positions the layers mix: windows of the longest sequence."""
        return -(-self.length // self.window)

    def link_pattern(self) -> LinkPattern:
        """Return the protocol as a value."""
        if self.table is None:
            base = self.base if self.layer == "paper" else choose_base(self.protocol, self.links, self.base)
            return named_pattern(self.protocol, self.links, self.factors, base)
        if self.links is not None or self.factors is not None:
            raise ValueError(f"links={self.links} and factors={self.factors} follow from the table; leave them None")
        return Links(self.table)

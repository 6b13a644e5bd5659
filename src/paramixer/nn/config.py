"""The model's settings as one flat, frozen value, documented field by field and checked where it is made."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

from paramixer.links import LinkPattern, Links, named_pattern

ProtocolName = Literal["chord", "cdil", "links"]


@dataclass(frozen=True, kw_only=True)
class ParamixerConfig:
    """Everything a :class:`Paramixer` is built from. Token input has a vocabulary, real-valued input has features."""

    length: int
    """N, the longest sequence, a CLS token included. Offsets, positions and the FLAT head derive from it."""
    outputs: int
    """Number of classes, or of values to predict."""
    vocabulary: int | None = None
    """Number of different token ids, PAD and CLS included; None for real-valued input."""
    features: int | None = None
    """Numbers at each position of a real-valued input; None for tokens."""
    channels: int = 32
    """E, width of the embedding and of the values."""
    hidden: int = 32
    """H, width of the hidden layers of the link MLPs and of g."""
    blocks: int = 1
    """L, how many blocks are stacked."""
    mixer: str = "paramixer"
    """What mixes the positions: paramixer, or one of the rivals that the command paramixer models lists. For a rival,
    hidden is the width of its feed-forward, and what belongs to links does nothing."""
    heads: int = 1
    """Heads of a rival's attention."""
    rank: int | None = None
    """Of a rival: Linformer's k, landmarks, random features, states; None for its usual number."""
    window: int | None = None
    """Of a rival: width of local attention, bucket, block or stride; None for its usual number."""
    protocol: ProtocolName = "chord"
    """Which positions a factor links: chord, cdil, or links for a table of your own."""
    links: int | None = None
    """K, links a position; None for ceil(log2 N) + 1 with chord and 9 with cdil."""
    factors: int | None = None
    """M, factors of a chain; None for ceil(log2 N)."""
    table: tuple[tuple[int, ...], ...] | None = None
    """The offsets, one row a factor, for protocol links."""
    residual: Literal["factor", "block", "none"] = "factor"
    """What each factor adds to its mix: its own input, the block's values after g, or nothing."""
    ring: bool = True
    """Whether links wrap round the ends; without, a link that leaves the sequence contributes nothing."""
    link_input: Literal["first", "block"] = "first"
    """What the link MLPs of each block read: the embedded input X0, or the block's own input."""
    positions: bool = True
    """Whether a learned table of absolute positions is added to the embedding."""
    pooling: Literal["flat", "cls", "mean", "token"] = "flat"
    """What the head reads: all positions, position 0, their mean, or each position for an answer of its own."""
    target: Literal["class", "value"] = "class"
    """Whether the outputs are logits of classes or real values."""
    embedding_dropout: float = 0.0
    """Dropout after the embedding, applied once more on the way into the first block."""
    block_dropout: float = 0.0
    """Dropout after the last factor of each block."""
    pad: int | None = None
    """The token id that fills up shorter sequences; its embedding is zero and stays zero. None if there is none."""
    padding: Literal["symbol", "length"] = "symbol"
    """What padding is: a symbol at an ordinary position, up to the full length, or nothing, each sequence mixing on a
    ring of its own length."""
    init: Literal["paper", "identity", "local", "even", "pairs"] = "paper"
    """How blocks start: drawn as torch draws linear layers; with chains close to the identity; with chains that read
    the nearest neighbours, a g that keeps the values' scale, a head of zeros and, where that reads position 0 alone, a
    last chain that averages over the sequence; like that without neighbours, and with a head that weighs every
    position alike; or, where the answer lies in how tokens go together, with chains that add up the places of tokens
    that stand out, wherever another one does."""
    embedding_bound: float | None = None
    """Token embeddings start uniform within this bound; None for standard normal."""
    amounts: bool = False
    """Whether token ids are amounts, such as shades of gray: the first channel of their embeddings then starts as what
    is nearly the largest, which stands out, and the second as how large it is."""
    keep: int = 1
    """Training keeps every keep-th factor's input and recomputes the others: larger saves memory, 1 is fastest."""

    def __post_init__(self) -> None:
        if self.table is not None:
            object.__setattr__(self, "table", Links(self.table).table)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "__index__") and not isinstance(value, int):
                # numpy's whole numbers are welcome, but JSON knows only Python's.
                object.__setattr__(self, field.name, int(value))
        check_types(self)
        counts = ("length", "outputs", "vocabulary", "features", "channels", "hidden", "blocks", "keep")
        for name in (*counts, "heads", "rank", "window"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name}={count}; it must be at least 1")
        if (self.vocabulary is None) == (self.features is None):
            raise ValueError(
                f"vocabulary={self.vocabulary} and features={self.features}; "
                "give a vocabulary for token input or features for real-valued input, not both"
            )
        if self.amounts and self.vocabulary is None:
            raise ValueError("amounts=True is for token ids; real-valued input is a number already")
        for name in ("embedding_dropout", "block_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; a probability from 0 up to, but not including, 1")
        if self.pad is not None and not 0 <= self.pad < (self.vocabulary or 0):
            raise ValueError(f"pad={self.pad} is no token id of a vocabulary of {self.vocabulary}; use an id or None")
        if self.embedding_bound is not None and not 0 < self.embedding_bound < math.inf:
            raise ValueError(f"embedding_bound={self.embedding_bound}; it must be positive and finite, or None")
        if (self.protocol == "links") != (self.table is not None):
            raise ValueError(
                f"protocol={self.protocol!r} with table={self.table}; protocol 'links' and a table go together"
            )
        self.link_pattern().offsets(self.length)

    def link_pattern(self) -> LinkPattern:
        """The protocol as a value."""
        if self.table is None:
            return named_pattern(self.protocol, self.links, self.factors)
        if self.links is not None or self.factors is not None:
            raise ValueError(f"links={self.links} and factors={self.factors} follow from the table; leave them None")
        return Links(self.table)


def check_types(config: Any) -> None:
    """Every field of a dataclass holds what its annotation says."""
    hints = typing.get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        if not _fits(value, hint):
            raise ValueError(f"{field.name}={value!r}; it must be {_describe(hint)}")


def _fits(value: object, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(part, arguments[0]) for part in value)
    if origin is not None:
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _describe(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments)
    if origin is Literal:
        return "one of " + ", ".join(arguments)
    if origin is tuple:
        return "a table of whole numbers"
    names = {int: "a whole number", float: "a number", bool: "true or false", types.NoneType: "None", str: "a text"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))

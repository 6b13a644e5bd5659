"""The shape of one chain, as flags describe it. This module imports no torch, so that help stays quick."""

# No postponed annotations: command lines read the types of the fields.
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ChainShape:
    """The shape of one chain, in float32."""

    length: int = 16384
    """N, positions per sequence."""
    batch: int = 2
    """Batch size."""
    channels: int = 32
    """Width of the values."""
    inputs: int | None = None
    """Width of the input of the link MLPs. By default the channels."""
    hidden: int = 32
    """Width of the hidden layers of the link MLPs."""
    heads: int | None = None
    """Heads, each with an equal slice of the channels and of the inputs. By default the chain has none."""
    protocol: Literal["chord", "cdil"] = "chord"
    """Which positions a factor links."""
    links: int | None = None
    """K, links per position. By default ceil(log2 N) + 1 with chord, 9 with cdil."""
    factors: int | None = None
    """M, factors per chain. By default ceil(log2 N)."""

"""The flags of ``paramixer bench`` and ``paramixer cost`` that describe a chain."""

# No postponed annotations: the command line reads the types of the fields.
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from paramixer.bench.case import Case


@dataclass(frozen=True, kw_only=True)
class ChainOptions:
    """The shape of a chain, in float32."""

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
    protocol: Literal["chord", "cdil"] = "chord"
    """Which positions a factor links."""
    links: int | None = None
    """K, links per position. By default ceil(log2 N) + 1 with chord, 9 with cdil."""
    factors: int | None = None
    """M, factors per chain. By default ceil(log2 N)."""

    def case(self) -> "Case":
        """Return the chain to measure."""
        from paramixer.bench.case import Case

        return Case(**dataclasses.asdict(self))

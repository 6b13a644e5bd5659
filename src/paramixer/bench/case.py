"""The shape of one chain to measure, and tensors to measure it with."""

# No postponed annotations: command lines read the fields' types where they are inherited, in other modules.
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from paramixer.links import named_pattern


class Tensors(NamedTuple):
    """The arguments of every implementation of a chain; all of them require gradients."""

    inputs: Tensor
    values: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor


@dataclass(frozen=True, kw_only=True)
class Case:
    """The shape of one chain, in float32."""

    batch: int = 2
    """Batch size."""
    length: int = 16384
    """N, positions per sequence."""
    channels: int = 32
    """Width of the values."""
    inputs: int | None = None
    """Width of the link MLPs' input; None for the channels."""
    hidden: int = 32
    """Width of the hidden layers of the link MLPs."""
    protocol: Literal["chord", "cdil"] = "chord"
    """Which positions a factor links."""
    links: int | None = None
    """K, links per position; None for ceil(log2 N) + 1 with chord and 9 with cdil."""
    factors: int | None = None
    """M, factors per chain; None for ceil(log2 N)."""

    def __post_init__(self) -> None:
        for name in ("batch", "channels", "inputs", "hidden"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name}={count}; it must be at least 1")
        self.offsets()

    def __str__(self) -> str:
        factors, links = self.offsets().shape
        inputs = "" if self.inputs is None else f", inputs {self.inputs}"
        return (
            f"{self.batch} x {self.length}, {self.protocol.upper()}, M = {factors}, K = {links}, "
            f"channels {self.channels}{inputs}, hidden {self.hidden}"
        )

    @property
    def tokens(self) -> int:
        """Positions of the whole batch."""
        return self.batch * self.length

    @property
    def width(self) -> int:
        """E, the width of the link input."""
        return self.channels if self.inputs is None else self.inputs

    def offsets(self) -> Tensor:
        """int64 ``[factors, links]``."""
        return named_pattern(self.protocol, self.links, self.factors).offsets(self.length)

    def tensors(self, seed: int = 0) -> Tensors:
        """Random tensors, scaled so that long chains stay of order one."""
        generator = torch.Generator().manual_seed(seed)
        factors, links = self.offsets().shape
        shapes_and_scales = [
            ((self.batch, self.length, self.width), 1.0),
            ((self.batch, self.length, self.channels), 1.0),
            ((factors, self.width, self.hidden), self.width**-0.5),
            ((factors, self.hidden), 0.5),
            ((factors, self.hidden, links), (self.hidden * links) ** -0.5),
            ((factors, links), 0.3 * links**-0.5),
        ]
        return Tensors(
            *(
                torch.randn(shape, generator=generator).mul_(scale).requires_grad_()
                for shape, scale in shapes_and_scales
            )
        )

    def upstream(self, seed: int = 1) -> Tensor:
        """A gradient of the output, ``[batch, length, channels]``."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.batch, self.length, self.channels, generator=generator)

"""One chain to measure, and tensors to measure it with."""

# No postponed annotations: command lines read the fields' types where they are inherited, in other modules.
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from paramixer.bench.device import measured_device
from paramixer.bench.shape import ChainShape
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
class Case(ChainShape):
    """A chain of a shape that is checked, with tensors to measure it with."""

    def __post_init__(self) -> None:
        for name in ("batch", "channels", "inputs", "hidden", "heads"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name}={count}; it must be at least 1")
        for name in ("channels", "inputs"):
            width = getattr(self, name)
            if width is not None and width % self.chains:
                raise ValueError(f"{name}={width} cannot be divided among {self.heads} heads; use a multiple")
        self.offsets()

    def __str__(self) -> str:
        factors, links = self.offsets().shape
        inputs = "" if self.inputs is None else f", inputs {self.inputs}"
        heads = "" if self.heads is None else f", {self.heads} heads"
        return (
            f"{self.batch} x {self.length}, {self.protocol.upper()}, M = {factors}, K = {links}, "
            f"channels {self.channels}{inputs}, hidden {self.hidden}{heads}"
        )

    @property
    def tokens(self) -> int:
        """Positions of the whole batch."""
        return self.batch * self.length

    @property
    def chains(self) -> int:
        """How many chains a sequence goes through side by side: one for each head."""
        return 1 if self.heads is None else self.heads

    @property
    def width(self) -> int:
        """E, the width of the link input of one head."""
        return (self.channels if self.inputs is None else self.inputs) // self.chains

    @property
    def head_channels(self) -> int:
        """Width of the values of one head."""
        return self.channels // self.chains

    def offsets(self) -> Tensor:
        """int64 ``[factors, links]``."""
        return named_pattern(self.protocol, self.links, self.factors).offsets(self.length)

    def tensors(self, seed: int = 0) -> Tensors:
        """Random tensors, scaled so that long chains stay of order one."""
        generator = torch.Generator().manual_seed(seed)
        factors, links = self.offsets().shape
        chain = (factors,) if self.heads is None else (self.heads, factors)
        shapes_and_scales = [
            ((self.batch, self.length, self.width * self.chains), 1.0),
            ((self.batch, self.length, self.channels), 1.0),
            ((*chain, self.width, self.hidden), self.width**-0.5),
            ((*chain, self.hidden), 0.5),
            ((*chain, self.hidden, links), (self.hidden * links) ** -0.5),
            ((*chain, links), 0.3 * links**-0.5),
        ]
        return Tensors(
            *(
                torch.randn(shape, generator=generator).mul_(scale).to(measured_device()).requires_grad_()
                for shape, scale in shapes_and_scales
            )
        )

    def upstream(self, seed: int = 1) -> Tensor:
        """A gradient of the output, ``[batch, length, channels]``."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.batch, self.length, self.channels, generator=generator).to(measured_device())

"""ParamixerBlock: V = g(V), then a chain of sparse factors whose entries are computed by MLPs from the link input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.links import LinkPattern, named_pattern, whole_number
from paramixer.nn.init import UndrawnLinear, draw_linear_, draw_uniform_
from paramixer.nn.mixing import MixingMatrix
from paramixer.ops import mlp, paramix
from paramixer.ops.checks import (
    as_lengths,
    check_checkpoint_every,
    check_residual,
    check_ring,
    is_autocasting,
)
from paramixer.ops.dropout import Dropout


class TokenMlp(nn.Sequential):
    """g: a linear layer, GELU and another linear layer for every token, in one operator that stores no hidden layer."""

    def __init__(self, channels: int, hidden: int, generator: Generator | None = None) -> None:
        super().__init__(UndrawnLinear(channels, hidden), nn.GELU(), UndrawnLinear(hidden, channels))
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw both layers, one after the other, as torch draws linear layers."""
        for layer in self.layers():
            draw_linear_(layer, generator)

    def layers(self) -> tuple[nn.Linear, nn.Linear]:
        """Return the two linear layers."""
        first, _, second = self
        assert isinstance(first, nn.Linear)
        assert isinstance(second, nn.Linear)
        return first, second

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return g of values ``[batch, length, channels]``, row by row; rows past the lengths are zero."""
        first, second = self.layers()
        return mlp(values, first.weight.T, first.bias, second.weight.T, second.bias, lengths)


class ParamixerBlock(nn.Module):
    """Mixes a sequence by ``A g(values)``, where A is the product of factors computed from the link input.

    Args:
        length: the longest sequence, from which the protocol derives its offsets. Shorter ones mix on shorter rings.
        channels: width of the values.
        hidden: width of the hidden layers of g and of the link MLPs.
        inputs: width of the link input; the channels by default.
        protocol: "chord", "cdil", or a value such as ``Chord(links=5)`` or ``Links([[0, 1], [0, -2]])``.
        links: K, for a protocol given by name.
        factors: M, for a protocol given by name.
        residual: what each factor adds: "factor" its own input, "block" the values after g, "none" nothing.
        ring: with False, links that leave the sequence contribute nothing.
        dropout: probability of a zero in the output, while training.
        checkpoint_every: store the input of every so many factors for the backward pass and recompute the others.
        generator: where the parameters are drawn from, see :meth:`reset_parameters`; torch's global generator by
            default.
    """

    def __init__(
        self,
        length: int,
        channels: int,
        hidden: int,
        inputs: int | None = None,
        protocol: str | LinkPattern = "chord",
        links: int | None = None,
        factors: int | None = None,
        residual: str = "factor",
        *,
        ring: bool = True,
        dropout: float = 0.0,
        checkpoint_every: int = 1,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        inputs = channels if inputs is None else inputs
        for name, width in (("channels", channels), ("hidden", hidden), ("inputs", inputs)):
            if whole_number(name, width) < 1:
                raise ValueError(f"{name}={width}; a block needs at least 1")
        check_residual("ParamixerBlock", residual)
        check_checkpoint_every("ParamixerBlock", checkpoint_every)
        check_ring("ParamixerBlock", ring)
        if isinstance(protocol, str):
            protocol = named_pattern(protocol, links, factors)
        elif not isinstance(protocol, LinkPattern):
            raise ValueError(f"protocol={protocol!r}; give chord, cdil, or a value such as Chord() or Links([[0, 1]])")
        elif links is not None or factors is not None:
            raise ValueError(f"links and factors are part of {protocol}; set them there, not beside it")
        self.length, self.channels, self.hidden, self.inputs = length, channels, hidden, inputs
        self.protocol, self.residual, self.ring, self.checkpoint_every = protocol, residual, ring, checkpoint_every
        # No buffer: the operators want it on the CPU, wherever the parameters are.
        self.offsets = protocol.offsets(length)
        count, width = self.offsets.shape
        self.w1 = nn.Parameter(torch.empty(count, inputs, hidden))
        self.b1 = nn.Parameter(torch.empty(count, hidden))
        self.w2 = nn.Parameter(torch.empty(count, hidden, width))
        self.b2 = nn.Parameter(torch.empty(count, width))
        self._draw_links(generator)
        self.g = TokenMlp(channels, hidden, generator)
        self.dropout = Dropout(dropout)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw all parameters as the paper does, in the order w1, b1, w2, b2, g."""
        self._draw_links(generator)
        self.g.reset_parameters(generator)

    def _draw_links(self, generator: Generator | None) -> None:
        draw_uniform_(self.inputs, self.w1, self.b1, generator=generator)
        draw_uniform_(self.hidden, self.w2, self.b2, generator=generator)

    def forward(
        self,
        values: Tensor,
        inputs: Tensor,
        lengths: Tensor | Sequence[int] | None = None,
        row_ids: Tensor | None = None,
    ) -> Tensor:
        """Return A g(values), where A is computed from inputs.

        Args:
            values: ``[batch, length, channels]``.
            inputs: ``[batch, length, inputs]``; with row_ids a table ``[rows, inputs]``.
            lengths: ``[batch]``, how many positions of each sequence count.
            row_ids: ``[batch, length]``, the table row of each position. The result equals that of the inputs
                ``table[row_ids]``, but the links of a row are computed once.
        """
        self._check("values", values, self.channels)
        if row_ids is None:
            self._check("inputs", inputs, self.inputs)
        elif inputs.shape[1:] != (self.inputs,) or row_ids.shape != values.shape[:2]:
            raise ValueError(
                f"inputs and row_ids have shapes {list(inputs.shape)} and {list(row_ids.shape)}, "
                f"expected [rows, {self.inputs}] and {list(values.shape[:2])}"
            )
        lengths = as_lengths("ParamixerBlock", lengths, values.shape[0])
        if lengths is not None:
            lengths = lengths.to(values.device)
        start: Tensor = self.g(values, lengths)
        dropped: Tensor = self.dropout(self._mix(start, inputs, lengths, row_ids))
        return dropped

    def factors(self, inputs: Tensor) -> Tensor:
        """Return the entries of every factor, ``[batch, factors, length, links]``, without any residual."""
        self._check("inputs", inputs, self.inputs)
        hidden = F.gelu(torch.einsum("bne,meh->bmnh", inputs, self.w1) + self.b1[:, None])
        return hidden @ self.w2 + self.b2[:, None]

    def mixing_matrix(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return A, ``[batch, length, length]``: ``mixing_matrix(x) @ g(v)`` is ``forward(v, x)`` without dropout.

        It has length x length entries; use :meth:`mixing_rows` for long sequences.
        """
        return self._matrix(inputs, lengths).dense(self.checkpoint_every)

    def mixing_rows(
        self, inputs: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return rows of A, ``[batch, positions, length]``, each in time and memory proportional to the stored entries.

        A row is the transposed chain applied to a unit vector, which is what the backward pass does to a gradient.
        """
        return self._matrix(inputs, lengths).rows(positions)

    def mixing_columns(
        self, inputs: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return columns of A, ``[batch, positions, length]``: the weight of each of these positions in all results."""
        return self._matrix(inputs, lengths).columns(positions)

    def multiply_transposed(
        self, inputs: Tensor, vectors: Tensor, lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return A transposed times vectors ``[batch, length, count]``, without forming A."""
        return self._matrix(inputs, lengths).multiply_transposed(vectors)

    def extra_repr(self) -> str:
        """Return what print(block) shows."""
        return (
            f"length={self.length}, channels={self.channels}, hidden={self.hidden}, inputs={self.inputs}, "
            f"protocol={self.protocol}, residual={self.residual!r}, ring={self.ring}, "
            f"checkpoint_every={self.checkpoint_every}"
        )

    def _matrix(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None) -> MixingMatrix:
        self._check("inputs", inputs, self.inputs)
        return MixingMatrix(inputs, *self._link_parameters(), lengths, self.ring)

    def _mix(
        self,
        values: Tensor,
        inputs: Tensor,
        lengths: Tensor | Sequence[int] | None,
        row_ids: Tensor | None = None,
    ) -> Tensor:
        return paramix(inputs, values, *self._link_parameters(), lengths, self.ring, self.checkpoint_every, row_ids)

    def _link_parameters(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, str]:
        return self.w1, self.b1, self.w2, self.b2, self.offsets, self.residual

    def _check(self, name: str, tensor: Tensor, width: int) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} are a {type(tensor).__name__}, expected a torch.Tensor")
        if tensor.dim() != 3 or tensor.shape[2] != width:
            raise ValueError(f"{name} have shape {list(tensor.shape)}, expected [batch, length, {width}]")
        if tensor.shape[1] > self.length:
            raise ValueError(
                f"length {tensor.shape[1]} of {name} exceeds the block's {self.length}; "
                f"make the block with length={tensor.shape[1]} or cut the input"
            )
        if tensor.dtype != self.w1.dtype and not is_autocasting(tensor):
            raise TypeError(
                f"{name} are {tensor.dtype}, the block's parameters are {self.w1.dtype}; convert one of them"
            )

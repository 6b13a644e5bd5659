"""ParamixerBlock: V = g(V), then a chain of sparse factors whose entries are written by MLPs from the link input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.links import LinkPattern, named_pattern, whole_number
from paramixer.nn import init as parameters
from paramixer.nn import starts
from paramixer.ops import mlp, paramix
from paramixer.ops.chain import computing
from paramixer.ops.checks import (
    autocasting,
    check_keep,
    check_residual,
    check_ring,
    length_tensor,
    whole_numbers,
)
from paramixer.ops.dropout import Dropout
from paramixer.ops.functional import checked_chain
from paramixer.ops.torch_ops import paramix_backward_op

# A row of A costs as much memory as one channel of the values; so many are computed at a time.
_ROWS_AT_ONCE = 16


class TokenMlp(nn.Sequential):
    """g: a linear layer, GELU and another linear layer for every token, in one operator that stores no hidden layer."""

    def __init__(self, channels: int, hidden: int, generator: Generator | None = None) -> None:
        super().__init__(
            parameters.linear(channels, hidden, generator),
            nn.GELU(),
            parameters.linear(hidden, channels, generator),
        )

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Values ``[batch, length, channels]``, each row by itself; rows past the lengths come out zero."""
        first, _, second = self
        assert isinstance(first, nn.Linear)
        assert isinstance(second, nn.Linear)
        return mlp(values, first.weight.T, first.bias, second.weight.T, second.bias, lengths)


class ParamixerBlock(nn.Module):
    """Mixes a sequence by ``A g(values)``, where A is the product of the factors that the link input writes.

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
        init: "paper" draws as torch does; "identity" shrinks the last layer of every link MLP tenfold and zeroes its
            bias, so that (with a residual) the chain starts near the identity; "even" also draws g to keep its input's
            scale; "local" is even but for the links of the first factor to the nearest neighbours; "average" is local
            around factors that average over their links; "pairs" adds up what lies around all positions that stand out
            in the first channel of the link input, and hands it to those that stand out themselves.
        keep: keep every keep-th factor's input for the backward pass and recompute the others.
        generator: where the initial parameters are drawn from; torch's global generator by default.
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
        init: str = "paper",
        keep: int = 1,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        inputs = channels if inputs is None else inputs
        for name, width in (("channels", channels), ("hidden", hidden), ("inputs", inputs)):
            if whole_number(name, width) < 1:
                raise ValueError(f"{name}={width}; a block needs at least 1")
        check_residual("ParamixerBlock", residual)
        check_keep("ParamixerBlock", keep)
        check_ring("ParamixerBlock", ring)
        if init not in starts.INITS:
            raise ValueError(f"init={init!r}; choose from {', '.join(starts.INITS)}")
        if isinstance(protocol, str):
            protocol = named_pattern(protocol, links, factors)
        elif not isinstance(protocol, LinkPattern):
            raise ValueError(f"protocol={protocol!r}; give chord, cdil, or a value such as Chord() or Links([[0, 1]])")
        elif links is not None or factors is not None:
            raise ValueError(f"links and factors are part of {protocol}; set them there, not beside it")
        self.length, self.channels, self.hidden, self.inputs = length, channels, hidden, inputs
        self.protocol, self.residual, self.ring, self.keep = protocol, residual, ring, keep
        # No buffer: the operators want it on the CPU, wherever the parameters are.
        self.offsets = protocol.offsets(length)
        count, width = self.offsets.shape
        self.w1 = nn.Parameter(torch.empty(count, inputs, hidden))
        self.b1 = nn.Parameter(torch.empty(count, hidden))
        self.w2 = nn.Parameter(torch.empty(count, hidden, width))
        self.b2 = nn.Parameter(torch.empty(count, width))
        parameters.linear_(inputs, self.w1, self.b1, generator=generator)
        parameters.linear_(hidden, self.w2, self.b2, generator=generator)
        self.g = TokenMlp(channels, hidden, generator)
        if init != "paper":
            starts.start_(self, init, generator)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        values: Tensor,
        inputs: Tensor,
        lengths: Tensor | Sequence[int] | None = None,
        symbols: Tensor | None = None,
    ) -> Tensor:
        """Values mixed by the links that inputs write.

        Args:
            values: ``[batch, length, channels]``.
            inputs: ``[batch, length, inputs]``; with symbols a table ``[symbols, inputs]``.
            lengths: ``[batch]``, how many positions of each sequence count.
            symbols: ``[batch, length]``, whose row of the table each position has: the result is that of the inputs
                ``table[symbols]``, but the links of a symbol are written only once.
        """
        self._check("values", values, self.channels)
        if symbols is None:
            self._check("inputs", inputs, self.inputs)
        elif inputs.shape[1:] != (self.inputs,) or symbols.shape != values.shape[:2]:
            raise ValueError(
                f"inputs and symbols have shapes {list(inputs.shape)} and {list(symbols.shape)}, "
                f"expected [symbols, {self.inputs}] and {list(values.shape[:2])}"
            )
        if lengths is not None:
            lengths = self._counts(lengths, values)
        start: Tensor = self.g(values, lengths)
        dropped: Tensor = self.dropout(self._mix(start, inputs, lengths, symbols))
        return dropped

    def factors(self, inputs: Tensor) -> Tensor:
        """The entries of every factor, ``[batch, factors, length, links]``, without any residual."""
        self._check("inputs", inputs, self.inputs)
        hidden = F.gelu(torch.einsum("bne,meh->bmnh", inputs, self.w1) + self.b1[:, None])
        return hidden @ self.w2 + self.b2[:, None]

    def mixing_matrix(self, inputs: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """A itself, ``[batch, length, length]``: ``mixing_matrix(x) @ g(v)`` is ``forward(v, x)`` without dropout.

        It has length x length entries; for long sequences ask for :meth:`mixing_rows`.
        """
        self._check("inputs", inputs, self.inputs)
        batch, length, _ = inputs.shape
        identity = torch.eye(length, dtype=inputs.dtype, device=inputs.device).expand(batch, length, length)
        return self._mix(identity, inputs, lengths)

    @torch.no_grad()
    def mixing_rows(
        self, inputs: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Rows of A, ``[batch, positions, length]``, each in time and memory proportional to the stored entries.

        A row is the transposed chain applied to a unit vector, which is what the backward pass does to a gradient.
        """
        units = self._units("mixing_rows", inputs, positions)
        return self.transposed(inputs, units, lengths).mT

    @torch.no_grad()
    def mixing_columns(
        self, inputs: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Columns of A, ``[batch, positions, length]``: whom each of these positions feeds, and how much."""
        units = self._units("mixing_columns", inputs, positions)
        if not units.shape[2]:
            return units.mT
        return torch.cat([self._mix(part, inputs, lengths) for part in torch.split(units, _ROWS_AT_ONCE, 2)], 2).mT

    @torch.no_grad()
    def transposed(self, inputs: Tensor, vectors: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """A transposed, times vectors ``[batch, length, count]``, without A."""
        self._check("inputs", inputs, self.inputs)
        if not vectors.shape[2]:
            return vectors
        found = []
        for part in torch.split(vectors, _ROWS_AT_ONCE, 2):
            chain = checked_chain("transposed", inputs, part, *self._parameters_of_links(), lengths, self.ring)
            # The chain is linear in the values, so its value gradient does not depend on them: any will do.
            nothing = part.new_empty(0, *part.shape, dtype=computing(part.dtype))
            _, product, *_ = paramix_backward_op(chain.values, *chain, chain.factors, nothing)
            found.append(product)
        return torch.cat(found, 2)

    def extra_repr(self) -> str:
        """What print(block) shows."""
        return (
            f"length={self.length}, channels={self.channels}, hidden={self.hidden}, inputs={self.inputs}, "
            f"protocol={self.protocol}, residual={self.residual!r}, ring={self.ring}, keep={self.keep}"
        )

    def _units(self, what: str, inputs: Tensor, positions: Tensor | Sequence[int]) -> Tensor:
        """Unit vectors ``[batch, length, positions]``."""
        self._check("inputs", inputs, self.inputs)
        batch, length, _ = inputs.shape
        wanted = whole_numbers(what, "positions", positions).to(inputs.device)
        if wanted.dim() != 1:
            raise ValueError(f"positions have shape {list(wanted.shape)}, expected a list of whole numbers")
        outside = wanted[(wanted < 0) | (wanted >= length)]
        if len(outside):
            raise ValueError(f"position {int(outside[0])} is outside the sequence, 0 to {length - 1}")
        return F.one_hot(wanted, length).to(inputs.dtype).T.expand(batch, length, len(wanted))

    def _mix(
        self,
        values: Tensor,
        inputs: Tensor,
        lengths: Tensor | Sequence[int] | None,
        symbols: Tensor | None = None,
    ) -> Tensor:
        return paramix(inputs, values, *self._parameters_of_links(), lengths, self.ring, self.keep, symbols)

    def _parameters_of_links(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, str]:
        return self.w1, self.b1, self.w2, self.b2, self.offsets, self.residual

    def _counts(self, lengths: Tensor | Sequence[int], values: Tensor) -> Tensor:
        counts = length_tensor("ParamixerBlock", lengths, values.shape[0])
        assert counts is not None
        return counts.to(values.device)

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
        if tensor.dtype != self.w1.dtype and not autocasting(tensor):
            raise TypeError(
                f"{name} are {tensor.dtype}, the block's parameters are {self.w1.dtype}; convert one of them"
            )

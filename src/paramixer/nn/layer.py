"""ParamixerLayer: chains of several heads inside a pre-norm residual layer that trains by itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from paramixer.links import LinkPattern, choose_base, named_pattern, whole_number
from paramixer.nn import init
from paramixer.nn.config import LEAST_HEAD_CHANNELS
from paramixer.nn.mixing import MixingMatrix
from paramixer.ops import mlp, paramix
from paramixer.ops.checks import as_lengths, check_checkpoint_every, check_ring, is_autocasting
from paramixer.ops.dropout import Dropout

# The norms before the chains and the feed-forward part limit and never amplify: a position that an earlier layer has
# made quiet stays quiet. With a small epsilon, a thousand positions would speak as loudly as the one that counts.
_EPSILON = 1.0
# The feed-forward part is wider than the layer by this factor.
_EXPANSION = 2


class ParamixerLayer(nn.Module):
    """A chain of factors for each of several heads, and a feed-forward part, each around a residual.

    With ``u = norm(x)``, one linear layer gives gate, values and link inputs. Head j mixes its slice of the values by a
    chain whose links its slice of the link inputs writes, and a norm follows, so that the gain of a product of factors
    does not matter. Then ``x + Linear(mixed * silu(gate))``, and ``x + MLP(norm(x))``.

    >>> layer = ParamixerLayer(length=1000, width=64)
    >>> layer(torch.randn(2, 1000, 64), lengths=[1000, 7]).shape
    torch.Size([2, 1000, 64])

    Args:
        length: the longest sequence, from which the protocol derives its offsets.
        width: of the input and the output, a multiple of the heads.
        heads: how many chains; each mixes width / heads channels.
        link_width: width of each head's link input.
        hidden: width of the hidden layers of the link MLPs.
        protocol: "chord", "cdil", or a value such as ``Cdil(base=4)``. Where it looks one way only, as CHORD does,
            every other head looks the other way.
        links: K, for a protocol given by name.
        factors: M, for a protocol given by name.
        base: of CDIL's dilations; by default 8, or 2 with fewer than 8 links.
        ring: whether links wrap around the ends; by default a link that leaves the sequence contributes nothing.
        dropout: probability of a zero in both residual branches, while training.
        depth: how many layers are stacked; residual branches start as 1 / sqrt(2 depth).
        checkpoint_every: store the input of every so many factors for the backward pass and recompute the others.
        generator: where the parameters are drawn from; torch's global generator by default.
    """

    def __init__(
        self,
        length: int,
        width: int,
        heads: int = 4,
        *,
        link_width: int = 16,
        hidden: int = 16,
        protocol: str | LinkPattern = "cdil",
        links: int | None = None,
        factors: int | None = None,
        base: int | None = None,
        ring: bool = False,
        dropout: float = 0.0,
        depth: int = 1,
        checkpoint_every: int = 1,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_ring("ParamixerLayer", ring)
        check_checkpoint_every("ParamixerLayer", checkpoint_every)
        if (
            whole_number("heads", heads) < 1
            or whole_number("width", width) % heads
            or width // heads < LEAST_HEAD_CHANNELS
        ):
            raise ValueError(
                f"width={width} with heads={heads}; a head needs an equal share of at least {LEAST_HEAD_CHANNELS} "
                "channels"
            )
        for name, count in (("link_width", link_width), ("hidden", hidden), ("depth", depth)):
            if whole_number(name, count) < 1:
                raise ValueError(f"{name}={count}; a layer needs at least 1")
        if isinstance(protocol, str):
            protocol = named_pattern(protocol, links, factors, choose_base(protocol, links, base))
        self.length, self.width, self.heads, self.link_width, self.hidden = length, width, heads, link_width, hidden
        self.protocol, self.ring, self.depth, self.checkpoint_every = protocol, ring, depth, checkpoint_every
        # No buffer: the operators want it on the CPU, wherever the parameters are.
        self.offsets = _look_both_ways(protocol.offsets(length), heads)
        count, width_of_row = self.offsets.shape[-2:]
        self.norm = nn.LayerNorm(width, eps=_EPSILON, bias=False)
        self.read = init.UndrawnLinear(width, 2 * width + heads * link_width)
        self.w1 = nn.Parameter(torch.empty(heads, count, link_width, hidden))
        self.b1 = nn.Parameter(torch.empty(heads, count, hidden))
        self.w2 = nn.Parameter(torch.empty(heads, count, hidden, width_of_row))
        self.b2 = nn.Parameter(torch.empty(heads, count, width_of_row))
        self.write = init.UndrawnLinear(width, width)
        self.mlp_norm = nn.LayerNorm(width, eps=_EPSILON, bias=False)
        self.up = init.UndrawnLinear(width, _EXPANSION * width)
        self.down = init.UndrawnLinear(_EXPANSION * width, width)
        self.dropout = Dropout(dropout)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw all parameters; see :func:`paramixer.nn.init.draw_layer_`."""
        init.draw_layer_(self, generator)

    def forward(self, x: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return the layer's output ``[batch, length, width]``.

        Args:
            x: ``[batch, length, width]``.
            lengths: ``[batch]``, how many positions of each sequence count. Rows past them must be finite; they affect
                no other row.
        """
        self._check(x)
        counts = as_lengths("ParamixerLayer", lengths, x.shape[0])
        counts = None if counts is None else counts.to(x.device)
        gate, values, inputs = self._read(x)
        mixed = self._normalize(self._mix(inputs, values, counts))
        x = x + self.dropout(self.write(self._open(mixed, gate)))
        return self._feed_forward(x, counts)

    def factors(self, x: Tensor) -> Tensor:
        """Return the entries of all factors for an input of the layer, ``[batch, heads, factors, length, links]``."""
        self._check(x)
        inputs = self._read(x)[2].reshape(*x.shape[:2], self.heads, self.link_width)
        hidden = F.gelu(torch.einsum("bnje,jmeh->bjmnh", inputs, self.w1) + self.b1[:, :, None])
        return hidden @ self.w2 + self.b2[:, :, None]

    def mixing(self, x: Tensor, lengths: Tensor | Sequence[int] | None = None) -> MixingMatrix:
        """Return the mixing matrices of the heads for an input of the layer, known by their products with vectors."""
        self._check(x)
        return MixingMatrix(self._read(x)[2], *self._link_parameters(), "factor", lengths, self.ring)

    def mixing_matrix(self, x: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """Return the mixing matrix of every head, ``[batch, heads, length, length]``."""
        return self.mixing(x, lengths).dense(self.checkpoint_every)

    def mixing_rows(
        self, x: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return rows of every head's mixing matrix, ``[batch, heads, positions, length]``."""
        return self.mixing(x, lengths).rows(positions)

    def mixing_columns(
        self, x: Tensor, positions: Tensor | Sequence[int], lengths: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return columns of every head's mixing matrix, ``[batch, heads, positions, length]``."""
        return self.mixing(x, lengths).columns(positions)

    def extra_repr(self) -> str:
        """Return what print(layer) shows."""
        return (
            f"length={self.length}, width={self.width}, heads={self.heads}, link_width={self.link_width}, "
            f"hidden={self.hidden}, protocol={self.protocol}, ring={self.ring}"
        )

    def _read(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return gate, values and link inputs."""
        joint: Tensor = self.read(self.norm(x))
        parts: tuple[Tensor, ...] = torch.split(joint, [self.width, self.width, self.heads * self.link_width], -1)
        return parts

    def _mix(self, inputs: Tensor, values: Tensor, counts: Tensor | None) -> Tensor:
        """Return the values of all heads after their chains."""
        return paramix(inputs, values, *self._link_parameters(), "factor", counts, self.ring, self.checkpoint_every)

    def _normalize(self, mixed: Tensor) -> Tensor:
        """Return every head's values at every position with mean 0 and variance 1."""
        by_head = mixed.view(*mixed.shape[:2], self.heads, self.width // self.heads)
        return F.layer_norm(by_head, by_head.shape[-1:]).flatten(-2)

    def _open(self, mixed: Tensor, gate: Tensor) -> Tensor:
        """Return what the gate lets through."""
        return mixed * F.silu(gate)

    def _feed_forward(self, x: Tensor, counts: Tensor | None) -> Tensor:
        """Return x with the feed-forward part's output added."""
        up, down = self.up, self.down
        fed = mlp(self.mlp_norm(x), up.weight.T, up.bias, down.weight.T, down.bias, counts)
        out: Tensor = x + self.dropout(fed)
        return out

    def _link_parameters(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.w1, self.b1, self.w2, self.b2, self.offsets

    def _check(self, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[2] != self.width:
            raise ValueError(f"x has shape {list(x.shape)}, expected [batch, length, {self.width}]")
        if x.shape[1] > self.length:
            raise ValueError(
                f"length {x.shape[1]} exceeds the layer's {self.length}; make the layer with length={x.shape[1]} or "
                "cut the input"
            )
        if x.dtype != self.w1.dtype and not is_autocasting(x):
            raise TypeError(f"x is {x.dtype}, the layer's parameters are {self.w1.dtype}; convert one of them")


def _look_both_ways(offsets: Tensor, heads: int) -> Tensor:
    """Return offsets for every head, every other one mirrored, where they look one way; else as they are."""
    if bool((offsets < 0).any()) or heads == 1:
        return offsets
    return torch.stack([-offsets if head % 2 else offsets for head in range(heads)])

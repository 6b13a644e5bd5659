"""Every way of computing the same chain, as one function of the same tensors.

A way is prepared for a case first: index lists are made and compilers called outside what is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.bench.case import Case
from paramixer.ops import paramix

Run = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Mix = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Way:
    """A way of computing a chain.

    Attributes:
        prepare: makes the function of inputs, values, w1, b1, w2, b2 for a case.
        what: what it does, in a few words.
        same: whether it computes the same function; if not it is only timed, and labelled so.
        longest: the longest sequence it is asked for; None for any.
    """

    prepare: Callable[[Case], Run]
    what: str
    same: bool = True
    longest: int | None = None

    def declines(self, case: Case) -> str | None:
        """Why the way is not asked for this case; None where it is."""
        if self.longest is not None and case.length > self.longest:
            return f"not measured beyond N = {self.longest}, where preparing it takes minutes"
        return None


def engine(case: Case) -> Run:
    """``pm.paramix``, served by the engine that "auto" takes."""
    offsets = case.offsets()
    return lambda inputs, values, w1, b1, w2, b2: paramix(inputs, values, w1, b1, w2, b2, offsets)


def rolls(case: Case) -> Run:
    """The values rolled and weighted, link by link."""

    def mix_along(offsets: list[int]) -> Mix:
        def mix(weights: Tensor, values: Tensor) -> Tensor:
            mixed = weights[..., :1] * values.roll(-offsets[0], 1)
            for k in range(1, len(offsets)):
                mixed = mixed + weights[..., k : k + 1] * values.roll(-offsets[k], 1)
            return mixed

        return mix

    return _chain([mix_along(row) for row in case.offsets().tolist()])


def compiled_rolls(case: Case) -> Run:
    """torch.compile of the rolls; it compiles when it is first called."""
    torch.compiler.reset()
    compiled: Run = torch.compile(rolls(case), dynamic=False)
    return compiled


def gather(case: Case) -> Run:
    """All neighbours of a factor gathered at once, ``[batch, length, links, channels]``."""

    def mix_among(neighbours: Tensor) -> Mix:
        return lambda weights, values: torch.einsum("bnk,bnkc->bnc", weights, values[:, neighbours])

    return _chain([mix_among(neighbours) for neighbours in _neighbours(case)])


def scatter(case: Case) -> Run:
    """The authors' gather-scatter: entries as row and column lists, weighted values added into their rows."""
    links = case.offsets().shape[1]
    rows = torch.arange(case.length).repeat_interleave(links)[None, :, None]

    def mix_into(columns: Tensor) -> Mix:
        def mix(weights: Tensor, values: Tensor) -> Tensor:
            picked = values.index_select(1, columns) * weights.flatten(1)[..., None]
            return torch.zeros_like(values).scatter_add(1, rows.expand_as(picked), picked)

        return mix

    return _chain([mix_into(neighbours.flatten()) for neighbours in _neighbours(case)])


def softmax(case: Case) -> Run:
    """Single-head softmax attention with its projections: what one would use instead, not the same function."""
    generator = torch.Generator().manual_seed(2)

    def projection(inputs: int, outputs: int) -> Tensor:
        matrix: Tensor = torch.randn(outputs, inputs, generator=generator) * inputs**-0.5
        return matrix.requires_grad_()

    queries_and_keys = projection(case.width, 2 * case.channels)
    others = projection(case.channels, case.channels), projection(case.channels, case.channels)

    def run(inputs: Tensor, values: Tensor, *_: Tensor) -> Tensor:
        queries, keys = F.linear(inputs, queries_and_keys)[:, None].chunk(2, -1)
        mixed: Tensor = F.scaled_dot_product_attention(queries, keys, F.linear(values, others[0])[:, None])
        return F.linear(mixed[:, 0], others[1])

    return run


ENGINE = "paramixer"
WAYS: dict[str, Way] = {
    ENGINE: Way(engine, "this library's engine"),
    "rolls": Way(rolls, "PyTorch rolls, link by link"),
    "compiled rolls": Way(compiled_rolls, "torch.compile of the rolls", longest=4096),
    "gather": Way(gather, "PyTorch gather of all neighbours"),
    "scatter": Way(scatter, "the authors' gather-scatter"),
    "softmax": Way(softmax, "softmax attention (SDPA), another function", same=False),
}


def _chain(mixes: Sequence[Mix]) -> Run:
    """The chain as PyTorch users write it, with one mix a factor."""

    def run(inputs: Tensor, values: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        for m, mix in enumerate(mixes):
            hidden = F.gelu(F.linear(inputs, w1[m].T, b1[m]))
            values = mix(F.linear(hidden, w2[m].T, b2[m]), values) + values
        return values

    return run


def _neighbours(case: Case) -> Tensor:
    """``[factors, length, links]``: the position that each link of each position leads to."""
    return (torch.arange(case.length)[:, None] + case.offsets()[:, None]) % case.length

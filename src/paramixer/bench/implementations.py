"""Several implementations of the same chain, each one function of the same tensors.

An implementation is built for a case first: index lists are made and compilers called outside what is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.bench.case import Case
from paramixer.bench.device import measured_device
from paramixer.ops import paramix

Run = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Mix = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Implementation:
    """One implementation of a chain.

    Attributes:
        build: makes the function of inputs, values, w1, b1, w2, b2 for a case.
        title: what it is, in a few words.
        same_function: whether it computes the same function; if not it is timed without verification.
        max_length: the longest sequence that it is measured on; None for any.
        heads: whether it serves chains with heads; "only" if it serves no others.
    """

    build: Callable[[Case], Run]
    title: str
    same_function: bool = True
    max_length: int | None = None
    heads: bool | Literal["only"] = True

    def reason_to_skip(self, case: Case) -> str | None:
        """Why the implementation is not measured on this case; None if it is."""
        if self.max_length is not None and case.length > self.max_length:
            return f"not measured beyond N = {self.max_length}, where building it takes minutes"
        if case.heads is not None and not self.heads:
            return "not written for heads"
        if case.heads is None and self.heads == "only":
            return "the chain has no heads"
        return None


def build_paramixer(case: Case) -> Run:
    """``pm.paramix``, served by the backend that "auto" chooses."""
    offsets = case.offsets()
    return lambda inputs, values, w1, b1, w2, b2: paramix(inputs, values, w1, b1, w2, b2, offsets)


def build_head_calls(case: Case) -> Run:
    """``pm.paramix`` once for each head, on slices of the channels and inputs."""
    offsets, heads = case.offsets(), case.chains

    def run(inputs: Tensor, values: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        slices = zip(inputs.chunk(heads, 2), values.chunk(heads, 2), strict=True)
        return torch.cat([paramix(*pair, w1[j], b1[j], w2[j], b2[j], offsets) for j, pair in enumerate(slices)], 2)

    return run


def build_rolls(case: Case) -> Run:
    """The values rolled and weighted, link by link."""

    def mix_along(offsets: list[int]) -> Mix:
        def mix(weights: Tensor, values: Tensor) -> Tensor:
            mixed = weights[..., :1] * values.roll(-offsets[0], 1)
            for k in range(1, len(offsets)):
                mixed = mixed + weights[..., k : k + 1] * values.roll(-offsets[k], 1)
            return mixed

        return mix

    return _build_chain(case, [mix_along(row) for row in case.offsets().tolist()])


def build_compiled_rolls(case: Case) -> Run:
    """torch.compile of the rolls; it compiles when it is first called."""
    torch.compiler.reset()
    compiled: Run = torch.compile(build_rolls(case), dynamic=False)
    return compiled


def build_gather(case: Case) -> Run:
    """All neighbors of a factor gathered at once, ``[batch, length, links, channels]``."""
    equation = "bnk,bnkc->bnc" if case.heads is None else "bnjk,bnkjc->bnjc"

    def mix_among(neighbors: Tensor) -> Mix:
        return lambda weights, values: torch.einsum(equation, weights, values[:, neighbors])

    return _build_chain(case, [mix_among(neighbors) for neighbors in _neighbors(case)])


def build_scatter(case: Case) -> Run:
    """The authors' gather-scatter: entries as row and column lists, weighted values added into their rows."""
    links = case.offsets().shape[1]
    rows = torch.arange(case.length, device=measured_device()).repeat_interleave(links)[None, :, None]

    def mix_into(columns: Tensor) -> Mix:
        def mix(weights: Tensor, values: Tensor) -> Tensor:
            picked = values.index_select(1, columns) * weights.flatten(1)[..., None]
            return torch.zeros_like(values).scatter_add(1, rows.expand_as(picked), picked)

        return mix

    return _build_chain(case, [mix_into(neighbors.flatten()) for neighbors in _neighbors(case)])


def build_softmax(case: Case) -> Run:
    """Single-head softmax attention with its projections: the usual alternative, not the same function."""
    generator = torch.Generator().manual_seed(2)

    def make_projection(inputs: int, outputs: int) -> Tensor:
        matrix: Tensor = torch.randn(outputs, inputs, generator=generator) * inputs**-0.5
        return matrix.to(measured_device()).requires_grad_()

    queries_and_keys = make_projection(case.width, 2 * case.channels)
    others = make_projection(case.channels, case.channels), make_projection(case.channels, case.channels)

    def run(inputs: Tensor, values: Tensor, *_: Tensor) -> Tensor:
        queries, keys = F.linear(inputs, queries_and_keys)[:, None].chunk(2, -1)
        mixed: Tensor = F.scaled_dot_product_attention(queries, keys, F.linear(values, others[0])[:, None])
        return F.linear(mixed[:, 0], others[1])

    return run


PARAMIXER = "paramixer"
IMPLEMENTATIONS: dict[str, Implementation] = {
    PARAMIXER: Implementation(build_paramixer, "paramixer"),
    "rolls": Implementation(build_rolls, "PyTorch rolls, link by link"),
    "compiled rolls": Implementation(build_compiled_rolls, "torch.compile of the rolls", max_length=4096),
    "gather": Implementation(build_gather, "PyTorch gather of all neighbors"),
    "scatter": Implementation(build_scatter, "the authors' gather-scatter", heads=False),
    "softmax": Implementation(
        build_softmax, "softmax attention (SDPA), another function", same_function=False, heads=False
    ),
    "head calls": Implementation(build_head_calls, "paramixer, one call per head", heads="only"),
}


def default_names(case: Case) -> tuple[str, ...]:
    """Return the implementations that serve such a chain."""
    return tuple(
        name
        for name, implementation in IMPLEMENTATIONS.items()
        if implementation.heads in ((True, False) if case.heads is None else (True, "only"))
    )


def check_names(names: Sequence[str]) -> None:
    """Refuse names of implementations that there are not."""
    for name in names:
        if name not in IMPLEMENTATIONS:
            raise ValueError(f"there is no implementation {name!r}; choose from {', '.join(IMPLEMENTATIONS)}")


def _build_chain(case: Case, mixes: Sequence[Mix]) -> Run:
    """The chain as PyTorch users write it, with one mix per factor; heads are one more axis, after the length."""

    def run(inputs: Tensor, values: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        for m, mix in enumerate(mixes):
            hidden = F.gelu(F.linear(inputs, w1[m].T, b1[m]))
            values = mix(F.linear(hidden, w2[m].T, b2[m]), values) + values
        return values

    def run_heads(inputs: Tensor, values: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        shape = *values.shape[:2], case.chains, -1
        inputs, mixed = inputs.view(shape), values.view(shape)
        for m, mix in enumerate(mixes):
            hidden = F.gelu(torch.einsum("bnje,jeh->bnjh", inputs, w1[:, m]) + b1[:, m])
            mixed = mix(torch.einsum("bnjh,jhk->bnjk", hidden, w2[:, m]) + b2[:, m], mixed) + mixed
        return mixed.flatten(2)

    return run if case.heads is None else run_heads


def _neighbors(case: Case) -> Tensor:
    """``[factors, length, links]``: the position that each link of each position leads to."""
    return ((torch.arange(case.length)[:, None] + case.offsets()[:, None]) % case.length).to(measured_device())

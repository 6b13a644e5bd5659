"""A chain of factors as a sequence of kernels, and the tensors between them.

Inside a chain, values lie in float32 by head, ``[batch, heads, length, channels]``: neighboring rows of a head are then
neighbors in memory. The arguments and results keep the layout that callers use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from paramixer.ops.chain import Chain, checkpoint_shape
from paramixer.ops.triton import backward, forward, launch, mixing
from paramixer.ops.triton.indices import place_lengths, place_shifts

# Widths of the blocks in which products are taken: of link inputs, and of hidden units in the backward pass.
INPUT_BLOCK, HIDDEN_BLOCK = 32, 64


class Rows(NamedTuple):
    """Values of all heads, and whether they lie by head."""

    tensor: Tensor
    by_head: bool


class Plan(NamedTuple):
    """A chain as the kernels take it."""

    chain: Chain
    batch: int
    length: int
    widths: dict[str, int]
    operands: dict[str, Any]
    indices: dict[str, Any]
    precision: str

    @property
    def heads(self) -> int:
        """How many heads; 1 for a chain without an axis of heads."""
        return self.chain.heads or 1

    def empty(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return memory for values by head."""
        w = self.widths
        return self.chain.values.new_empty((self.batch, self.heads, self.length, w["C"]), dtype=dtype)


def make_plan(chain: Chain) -> Plan:
    """Return the chain with its parameters by head, its offsets reduced to the rings and everything on the device."""
    batch, length, channels = chain.values.shape
    heads = chain.heads or 1
    inputs, values, w1, b1, w2, b2 = (tensor.detach().contiguous() for tensor in chain[:6])
    chain = chain._replace(inputs=inputs, values=values, w1=w1, b1=b1, w2=w2, b2=b2)
    M, E, H = w1.shape[-3:]
    device = values.device
    lengths = place_lengths(chain.lengths, device)
    # Read link by link: [heads, M, K, H].
    operands = {
        "inputs": inputs,
        "row_ids": None if chain.row_ids is None else chain.row_ids.contiguous(),
        "w1": w1,
        "b1": b1,
        "w2": w2.transpose(-1, -2).contiguous(),
        "b2": b2,
        "SHARED": chain.shares_inputs,
        "HAS_ROW_IDS": chain.row_ids is not None,
    }
    indices = {
        "shifts": place_shifts(chain.offsets, lengths, length, chain.ring, device),
        "lengths": lengths,
        "HAS_LENGTHS": lengths is not None,
        "RING": chain.ring,
    }
    widths = {"M": M, "E": E, "H": H, "K": b2.shape[-1], "C": channels // heads}
    return Plan(chain, batch, length, widths, operands, indices, launch.choose_precision(values))


def run_forward(chain: Chain, checkpoint_every: int) -> tuple[Tensor, Tensor]:
    """Return the output and the checkpoints; every factor but the last writes a checkpoint or a buffer."""
    plan = make_plan(chain)
    values = plan.chain.values
    mixed = torch.empty_like(values)
    shape = checkpoint_shape(values, plan.chain.w1, checkpoint_every)
    checkpoints = values.new_empty(shape, dtype=torch.float32)
    buffers = Buffers(plan)
    current = first = Rows(values, False)
    for m in range(plan.widths["M"]):
        if m == plan.widths["M"] - 1:
            out = Rows(mixed, False)
        elif checkpoint_every and (m + 1) % checkpoint_every == 0:
            out = Rows(checkpoints[(m + 1) // checkpoint_every - 1], True)
        else:
            out = Rows(buffers.other(current.tensor), True)
        _forward_factor(plan, m, current, first, out)
        current = out
    return mixed, checkpoints


def run_backward(grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of inputs (of every token, in float32), values, w1, b1, w2, b2."""
    plan = make_plan(chain)
    chain, widths = plan.chain, plan.widths
    factors, heads = widths["M"], plan.heads
    dinputs = chain.values.new_zeros((plan.batch, plan.length, chain.inputs.shape[-1]), dtype=torch.float32)
    dvalues = torch.empty_like(chain.values)
    links = dvalues.new_empty((2, plan.batch, heads, widths["K"], plan.length), dtype=torch.float32)
    sums = _Sums(plan)
    passed = torch.zeros_like(dvalues, dtype=torch.float32) if chain.residual == "block" else None
    buffers = Buffers(plan)
    first, upstream = Rows(chain.values, False), Rows(grad.detach().contiguous(), False)
    checkpoints = checkpoints.contiguous()
    segment_buffers = [plan.empty() for _ in range(min(checkpoint_every, factors) - 1)]
    for start in reversed(range(0, factors, checkpoint_every)):
        stop = min(start + checkpoint_every, factors)
        segment = [Rows(checkpoints[start // checkpoint_every - 1], True) if start else first]
        for m, buffer in zip(range(start, stop - 1), segment_buffers, strict=False):
            segment.append(Rows(buffer, True))
            _forward_factor(plan, m, segment[-2], first, segment[-1])
        for m in reversed(range(start, stop)):
            _backward_links(plan, m, upstream, segment[m - start], links)
            out = Rows(buffers.other(upstream.tensor), True) if m else Rows(dvalues, False)
            _backward_values(plan, m, upstream, passed, links[0], out)
            _backward_parameters(plan, m, links[1], dinputs, sums)
            upstream = out
    if passed is not None:
        dvalues = (dvalues + passed).to(dvalues.dtype)
    return dinputs, dvalues, *sums.gradients()


class Buffers:
    """Two buffers that take turns; made when they are needed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tensors: list[Tensor] = []

    def other(self, used: Tensor) -> Tensor:
        """Return a buffer that is not the one in use."""
        for tensor in self._tensors:
            if tensor is not used:
                return tensor
        self._tensors.append(self._plan.empty())
        return self._tensors[-1]


class _Sums:
    """The gradients of the parameters: partial sums of one factor, their totals for all."""

    def __init__(self, plan: Plan) -> None:
        w = plan.widths
        self._plan = plan
        self._sizes = [w["E"] * w["H"], w["H"], w["K"] * w["H"], w["K"]]
        self.choice_width = max(w["E"], min(w["H"], HIDDEN_BLOCK), w["K"])
        tile = launch.choose(self.choice_width).tile
        self.programs = launch.count_programs(plan.batch, plan.length, tile)
        self.partial = plan.chain.w1.new_empty((self.programs, plan.heads, sum(self._sizes)), dtype=torch.float32)
        self._totals = self.partial.new_empty((plan.heads, w["M"], sum(self._sizes)))

    def add_up(self, factor: int) -> None:
        """Add the partial sums of one factor: a sum over one axis, whose order is fixed."""
        torch.sum(self.partial, 0, out=self._totals[:, factor])

    def gradients(self) -> tuple[Tensor, ...]:
        """Return dw1, db1, dw2, db2 in the shapes and the dtype of the parameters."""
        chain = self._plan.chain
        if not self._plan.batch * self._plan.length:
            self._totals.zero_()
        dw1, db1, dw2, db2 = self._totals.split(self._sizes, -1)
        dw2 = dw2.reshape(*dw2.shape[:2], -1, self._plan.widths["H"]).transpose(-1, -2)
        shaped = zip((dw1, db1, dw2, db2), chain[2:6], strict=True)
        return tuple(gradient.reshape(parameter.shape).to(parameter.dtype).contiguous() for gradient, parameter in shaped)


def _forward_factor(plan: Plan, m: int, values: Rows, first: Rows, out: Rows) -> None:
    residual = values if plan.chain.residual == "factor" else first
    launch.launch_tiles(
        forward.factor_forward,
        plan.batch,
        plan.length,
        plan.heads,
        link_width(plan.widths),
        values=values.tensor,
        residual=residual.tensor,
        mixed=out.tensor,
        factor=m,
        HAS_RESIDUAL=plan.chain.residual != "none",
        VALUES_BY_HEAD=values.by_head,
        RESIDUAL_BY_HEAD=residual.by_head,
        MIXED_BY_HEAD=out.by_head,
        **_link_arguments(plan),
    )


def _backward_links(plan: Plan, m: int, upstream: Rows, values: Rows, links: Tensor) -> None:
    launch.launch_tiles(
        backward.link_backward,
        plan.batch,
        plan.length,
        plan.heads,
        link_width(plan.widths),
        grad=upstream.tensor,
        values=values.tensor,
        weights=links[0],
        dweights=links[1],
        factor=m,
        GRAD_BY_HEAD=upstream.by_head,
        VALUES_BY_HEAD=values.by_head,
        **_link_arguments(plan),
    )


def _backward_values(plan: Plan, m: int, upstream: Rows, passed: Tensor | None, weights: Tensor, out: Rows) -> None:
    w = plan.widths
    launch.launch_tiles(
        mixing.mix_stored,
        plan.batch,
        plan.length,
        plan.heads,
        w["C"],
        weights=weights,
        values=upstream.tensor,
        residual=upstream.tensor,
        passed=passed,
        mixed=out.tensor,
        factor=m,
        M=w["M"],
        K=w["K"],
        C=w["C"],
        CP=launch.pad(w["C"]),
        TRANSPOSED=True,
        BY_LINK=True,
        HAS_RESIDUAL=plan.chain.residual == "factor",
        PASSES=passed is not None,
        VALUES_BY_HEAD=upstream.by_head,
        MIXED_BY_HEAD=out.by_head,
        **plan.indices,
    )


def _backward_parameters(plan: Plan, m: int, slopes: Tensor, dinputs: Tensor, sums: _Sums) -> None:
    if not plan.batch * plan.length:
        return
    w = plan.widths
    operands = {name: value for name, value in plan.operands.items() if name != "b2"}
    heads = 1 if plan.operands["SHARED"] else plan.heads
    launch.run(
        backward.mlp_backward,
        lambda _: (sums.programs, heads),
        sums.choice_width,
        dweights=slopes,
        dinputs=dinputs,
        partial=sums.partial,
        batch=plan.batch,
        N=plan.length,
        factor=m,
        programs=sums.programs,
        HEADS=plan.heads,
        M=w["M"],
        E=w["E"],
        H=w["H"],
        K=w["K"],
        EP=launch.pad(w["E"]),
        KP=launch.pad(w["K"]),
        HB=min(launch.pad(w["H"]), HIDDEN_BLOCK),
        EB=min(launch.pad(w["E"]), INPUT_BLOCK),
        PRECISION=plan.precision,
        lengths=plan.indices["lengths"],
        HAS_LENGTHS=plan.indices["HAS_LENGTHS"],
        **operands,
    )
    sums.add_up(m)


def link_width(widths: dict[str, int]) -> int:
    """Return the width that decides the tile of the kernels that compute links."""
    return max(widths["H"], widths["C"])


def _link_arguments(plan: Plan) -> dict[str, Any]:
    w = plan.widths
    return {
        **plan.operands,
        **plan.indices,
        **w,
        "HP": launch.pad(w["H"]),
        "CP": launch.pad(w["C"]),
        "EB": min(launch.pad(w["E"]), INPUT_BLOCK),
        "PRECISION": plan.precision,
    }

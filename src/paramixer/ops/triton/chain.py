"""A chain of factors as a sequence of kernels, and the tensors between them.

Inside a chain, values lie in float32 by head, ``[batch, heads, length, channels]``: neighboring rows of a head are then
neighbors in memory. The arguments and results keep the layout that callers use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from paramixer.ops.chain import Chain, checkpoint_shape
from paramixer.ops.triton import backward, forward, launch, mixing, wide
from paramixer.ops.triton.indices import place_lengths, place_shifts

# Widths of the blocks in which products are taken: of link inputs, and of hidden units in the backward pass.
INPUT_BLOCK, HIDDEN_BLOCK = 32, 32


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
    launch.check_widths(hidden=H, links=widths["K"], channels=widths["C"], heads=heads)
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
    is_block = chain.residual == "block"
    # What is still to be added to is rounded once, in the end.
    dvalues = torch.empty_like(chain.values, dtype=torch.float32 if is_block else None)
    # Two tensors, not one: both begin where the allocator aligns them, or kernels would be compiled for either case.
    weights, slopes = (
        dvalues.new_empty((plan.batch, heads, widths["K"], plan.length), dtype=torch.float32) for _ in range(2)
    )
    sums = _Sums(plan)
    passed = torch.zeros_like(dvalues) if is_block else None
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
            _backward_links(plan, m, upstream, segment[m - start], weights, slopes)
            out = Rows(buffers.other(upstream.tensor), True) if m else Rows(dvalues, False)
            _backward_values(plan, m, upstream, passed, weights, out)
            _backward_parameters(plan, m, slopes, dinputs, sums)
            upstream = out
    if passed is not None:
        dvalues = (dvalues + passed).to(chain.values.dtype)
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
        self.is_wide = w["E"] > INPUT_BLOCK
        # The gradient before GELU of one factor, where it is not used up at once.
        shape = (plan.batch, plan.heads, plan.length, w["H"])
        self.dhidden = plan.chain.w1.new_empty(shape, dtype=torch.float32) if self.is_wide else None
        self._sizes = [w["E"] * w["H"], w["H"], w["K"] * w["H"], w["K"]]
        self.programs = launch.count_programs(plan.batch, plan.length)
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
        dw1, db1, dw2, db2 = torch.split(self._totals, self._sizes, -1)
        dw2 = dw2.reshape(*dw2.shape[:2], -1, self._plan.widths["H"]).transpose(-1, -2)
        shaped = zip((dw1, db1, dw2, db2), chain[2:6], strict=True)
        return tuple(
            gradient.reshape(parameter.shape).to(parameter.dtype).contiguous() for gradient, parameter in shaped
        )


def _forward_factor(plan: Plan, m: int, values: Rows, first: Rows, out: Rows) -> None:
    residual = values if plan.chain.residual == "factor" else first
    launch.launch_tiles(
        forward.factor_forward,
        plan.batch,
        plan.length,
        plan.heads,
        link_choice(plan.widths),
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


def _backward_links(plan: Plan, m: int, upstream: Rows, values: Rows, weights: Tensor, slopes: Tensor) -> None:
    launch.launch_tiles(
        backward.link_backward,
        plan.batch,
        plan.length,
        plan.heads,
        link_choice(plan.widths),
        grad=upstream.tensor,
        values=values.tensor,
        weights=weights,
        dweights=slopes,
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
        launch.choose(w["C"]),
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
    w, operands = plan.widths, plan.operands
    heads = plan.heads
    lengths = {name: plan.indices[name] for name in ("lengths", "HAS_LENGTHS")}
    inputs = {name: operands[name] for name in ("inputs", "row_ids", "SHARED", "HAS_ROW_IDS")}
    blocks = {"HB": min(launch.pad(w["H"]), HIDDEN_BLOCK), "EB": min(launch.pad(w["E"]), INPUT_BLOCK)}
    choice = launch.choose_summing(max(blocks.values()), plan.precision)
    sizes = {"E": w["E"], "H": w["H"], "PRECISION": plan.precision, **blocks}
    summing = {"batch": plan.batch, "N": plan.length, "HEADS": heads, "K": w["K"], "programs": sums.programs}
    launch.run(
        backward.mlp_backward,
        lambda _: (sums.programs, 1 if operands["SHARED"] else heads),
        choice,
        dweights=slopes,
        dinputs=dinputs,
        dhidden=sums.dhidden,
        partial=sums.partial,
        factor=m,
        M=w["M"],
        KP=launch.pad(w["K"]),
        WIDE=sums.is_wide,
        **{name: operands[name] for name in ("w1", "b1", "w2")},
        **(inputs | lengths | sizes | summing),
    )
    if sums.is_wide:
        launch.launch_tiles(
            wide.input_backward,
            plan.batch,
            plan.length,
            1 if operands["SHARED"] else heads,
            launch.choose(blocks["EB"]),
            dhidden=sums.dhidden,
            dinputs=dinputs,
            w1=operands["w1"],
            factor=m,
            ALL_HEADS=heads,
            M=w["M"],
            SHARED=operands["SHARED"],
            **(lengths | sizes),
        )
        launch.run(
            wide.first_layer_backward,
            lambda _: (sums.programs, heads),
            choice,
            dhidden=sums.dhidden,
            partial=sums.partial,
            **(inputs | lengths | sizes | summing),
        )
    sums.add_up(m)


def link_choice(widths: dict[str, int]) -> launch.Choice:
    """Return the choice of the kernels that compute links."""
    return launch.choose(max(widths["H"], widths["C"]))


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

"""The operators as torch custom ops, so that autograd, torch.compile, torch.export and opcheck understand them.

The engine is chosen inside the op, when it runs: a compiled graph obeys ``pm.backend`` as eager code does. Half
precision is computed in float32 here, once for all engines.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from paramixer.ops.backends import serving
from paramixer.ops.chain import Chain, computing, kept_factors, widen
from paramixer.ops.checks import check_length_values, check_symbol_values


def _without_autocast(values: Tensor) -> torch.autocast:
    """Engines choose their own precision; a surrounding autocast must not reach the matrix products inside."""
    return torch.autocast(values.device.type, enabled=False)


@custom_op("paramixer::link_mix", mutates_args=())
def link_mix_op(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """One factor with given weights."""
    check_length_values("link_mix", lengths, values.shape[1])
    with _without_autocast(values):
        wide = widen(weights), widen(values)
        mixed = serving(wide[1]).link_mix(*wide, offsets, lengths, ring)
    return mixed.to(values.dtype)


@custom_op("paramixer::link_mix_backward", mutates_args=())
def link_mix_backward_op(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of weights and values."""
    check_length_values("link_mix", lengths, values.shape[1])
    with _without_autocast(values):
        wide = widen(grad), widen(weights), widen(values)
        dweights, dvalues = serving(wide[2]).link_mix_backward(*wide, offsets, lengths, ring)
    return dweights.to(weights.dtype), dvalues.to(values.dtype)


@custom_op("paramixer::paramix", mutates_args=())
def paramix_op(
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    residual: str,
    ring: bool,
    symbols: Tensor | None,
    keep: int,
) -> tuple[Tensor, Tensor]:
    """The chain, and the factors' inputs that its backward pass wants kept (keep = 0: none)."""
    check_length_values("paramix", lengths, values.shape[1])
    check_symbol_values("paramix", symbols, inputs.shape[0])
    with _without_autocast(values):
        chain = Chain(inputs, values, w1, b1, w2, b2, offsets, lengths, residual, ring, symbols).widened()
        mixed, kept = serving(chain.values).paramix(chain, keep)
    return mixed.to(values.dtype), kept


@custom_op("paramixer::paramix_backward", mutates_args=())
def paramix_backward_op(
    grad: Tensor,
    inputs: Tensor,
    values: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    residual: str,
    ring: bool,
    symbols: Tensor | None,
    keep: int,
    kept: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of inputs, values, w1, b1, w2, b2."""
    check_length_values("paramix", lengths, values.shape[1])
    check_symbol_values("paramix", symbols, inputs.shape[0])
    with _without_autocast(values):
        chain = Chain(inputs, values, w1, b1, w2, b2, offsets, lengths, residual, ring, symbols).widened()
        grads = serving(chain.values).paramix_backward(widen(grad), chain, keep, kept)
    dinputs, dvalues, dw1, db1, dw2, db2 = (found.to(values.dtype) for found in grads)
    return dinputs, dvalues, dw1, db1, dw2, db2


@custom_op("paramixer::mlp", mutates_args=())
def mlp_op(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """A linear layer, GELU and another linear layer for every token; the hidden layer is never stored."""
    check_length_values("mlp", lengths, inputs.shape[1])
    with _without_autocast(inputs):
        wide = widen(inputs), widen(w1), widen(b1), widen(w2), widen(b2)
        out = serving(wide[0]).mlp(*wide, lengths)
    return out.to(inputs.dtype)


@custom_op("paramixer::mlp_backward", mutates_args=())
def mlp_backward_op(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of inputs, w1, b1, w2, b2."""
    check_length_values("mlp", lengths, inputs.shape[1])
    with _without_autocast(inputs):
        wide = widen(grad), widen(inputs), widen(w1), widen(b1), widen(w2), widen(b2)
        grads = serving(wide[1]).mlp_backward(*wide, lengths)
    dinputs, dw1, db1, dw2, db2 = (found.to(inputs.dtype) for found in grads)
    return dinputs, dw1, db1, dw2, db2


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


@link_mix_op.register_fake
def _(weights: Tensor, values: Tensor, *_: Any) -> Tensor:
    return _like(values)


@link_mix_backward_op.register_fake
def _(grad: Tensor, weights: Tensor, values: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _like(weights), _like(values)


@paramix_op.register_fake
def _(inputs: Tensor, values: Tensor, w1: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    keep: int = rest[-1]
    kept = values.new_empty(kept_factors(w1.shape[0], keep), *values.shape, dtype=computing(values.dtype))
    return _like(values), kept


@paramix_backward_op.register_fake
def _(grad: Tensor, inputs: Tensor, values: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return tuple(_like(tensor) for tensor in (inputs, values, *rest[:4]))


@mlp_op.register_fake
def _(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, *_: Any) -> Tensor:
    return inputs.new_empty(*inputs.shape[:2], w2.shape[1])


@mlp_backward_op.register_fake
def _(grad: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return tuple(_like(tensor) for tensor in rest[:5])


def _save_link_mix(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    weights, values, offsets, lengths, ctx.ring = inputs
    ctx.save_for_backward(weights, values, offsets, lengths)


def _link_mix_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return (*link_mix_backward_op(grad, *ctx.saved_tensors, ctx.ring), None, None, None)


def _save_paramix(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.residual, ctx.ring, symbols, ctx.keep = inputs
    # Else autograd fills a gradient of zeros for what was kept, as large as that is.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, symbols, output[1])


def _paramix_gradients(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 12
    if ctx.keep == 0:
        raise RuntimeError("paramixer::paramix ran with keep = 0, for inference; it has no backward pass")
    *tensors, symbols, kept = ctx.saved_tensors
    grads = paramix_backward_op(grad, *tensors, ctx.residual, ctx.ring, symbols, ctx.keep, kept)
    return (*grads, None, None, None, None, None, None)


def _save_mlp(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _mlp_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return (*mlp_backward_op(grad, *ctx.saved_tensors), None)


link_mix_op.register_autograd(_link_mix_gradients, setup_context=_save_link_mix)
paramix_op.register_autograd(_paramix_gradients, setup_context=_save_paramix)
mlp_op.register_autograd(_mlp_gradients, setup_context=_save_mlp)

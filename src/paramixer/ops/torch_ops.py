"""The operators as torch custom ops, so that autograd, torch.compile, torch.export and opcheck understand them.

The backend is selected inside the op, when it runs: a compiled graph obeys ``pm.backend`` as eager code does. Half
precision becomes float32 here, except for backends that take it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from paramixer.ops.backends import Backend, select_backend
from paramixer.ops.chain import Chain, checkpoint_shape, compute_dtype, widen
from paramixer.ops.checks import check_length_values, check_row_id_values

# The fields of Chain, then checkpoint_every.
_CHAIN = (
    "Tensor inputs, Tensor values, Tensor w1, Tensor b1, Tensor w2, Tensor b2, Tensor offsets, Tensor? lengths, "
    "str residual, bool ring, Tensor? row_ids, SymInt checkpoint_every"
)


def _disable_autocast(values: Tensor) -> torch.autocast:
    """Return a context without autocast, which would lower the precision of the matrix products inside backends."""
    return torch.autocast(values.device.type, enabled=False)


@custom_op("paramixer::link_mix", mutates_args=())
def link_mix_op(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """Apply one factor with given weights."""
    check_length_values("link_mix", lengths, values.shape[1])
    with _disable_autocast(values):
        backend = select_backend(values)
        fit = _converter(backend)
        mixed = backend.link_mix(fit(weights), fit(values), offsets, lengths, ring)
    return mixed.to(values.dtype)


@custom_op("paramixer::link_mix_backward", mutates_args=())
def link_mix_backward_op(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of weights and values."""
    check_length_values("link_mix", lengths, values.shape[1])
    with _disable_autocast(values):
        backend = select_backend(values)
        fit = _converter(backend)
        dweights, dvalues = backend.link_mix_backward(fit(grad), fit(weights), fit(values), offsets, lengths, ring)
    return dweights.to(weights.dtype), dvalues.to(values.dtype)


@custom_op("paramixer::paramix", mutates_args=(), schema=f"({_CHAIN}) -> (Tensor, Tensor)")
def paramix_op(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Return the chain's output and the factor inputs stored for its backward pass (none with checkpoint_every = 0)."""
    *fields, checkpoint_every = arguments
    chain = _check_chain(Chain(*fields))
    with _disable_autocast(chain.values):
        backend = select_backend(chain.values)
        mixed, checkpoints = backend.paramix(chain if backend.takes_half else chain.widen(), checkpoint_every)
    return mixed.to(chain.values.dtype), checkpoints


@custom_op(
    "paramixer::paramix_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {_CHAIN}, Tensor checkpoints) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def paramix_backward_op(grad: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    """Return the gradients of inputs, values, w1, b1, w2, b2."""
    *fields, checkpoint_every, checkpoints = arguments
    chain = _check_chain(Chain(*fields))
    with _disable_autocast(chain.values):
        backend = select_backend(chain.values)
        wide = chain if backend.takes_half else chain.widen()
        grads = backend.paramix_backward(_converter(backend)(grad), wide, checkpoint_every, checkpoints)
    return tuple(gradient.to(chain.values.dtype) for gradient in grads)


def _converter(backend: Backend) -> Callable[[Tensor], Tensor]:
    """Return what brings a tensor into a precision that the backend takes."""
    return (lambda tensor: tensor) if backend.takes_half else widen


def _check_chain(chain: Chain) -> Chain:
    check_length_values("paramix", chain.lengths, chain.values.shape[1])
    check_row_id_values("paramix", chain.row_ids, chain.inputs.shape[0])
    return chain


@custom_op("paramixer::mlp", mutates_args=())
def mlp_op(inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
    """Apply a linear layer, GELU and another linear layer to every token without storing the hidden layer."""
    check_length_values("mlp", lengths, inputs.shape[1])
    with _disable_autocast(inputs):
        backend = select_backend(inputs)
        fit = _converter(backend)
        out = backend.mlp(fit(inputs), fit(w1), fit(b1), fit(w2), fit(b2), lengths)
    return out.to(inputs.dtype)


@custom_op("paramixer::mlp_backward", mutates_args=())
def mlp_backward_op(
    grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of inputs, w1, b1, w2, b2."""
    check_length_values("mlp", lengths, inputs.shape[1])
    with _disable_autocast(inputs):
        backend = select_backend(inputs)
        fit = _converter(backend)
        grads = backend.mlp_backward(fit(grad), fit(inputs), fit(w1), fit(b1), fit(w2), fit(b2), lengths)
    dinputs, dw1, db1, dw2, db2 = (gradient.to(inputs.dtype) for gradient in grads)
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
    shape = checkpoint_shape(values, w1, rest[-1])
    return _like(values), values.new_empty(shape, dtype=compute_dtype(values.dtype))


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
    *tensors, ctx.residual, ctx.ring, row_ids, ctx.checkpoint_every = inputs
    # Otherwise autograd allocates a gradient of zeros for the checkpoints, as large as they are.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, row_ids, output[1])


def _paramix_gradients(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 12
    if ctx.checkpoint_every == 0:
        raise RuntimeError("paramixer::paramix ran with checkpoint_every = 0, for inference; it has no backward pass")
    *tensors, row_ids, checkpoints = ctx.saved_tensors
    grads = paramix_backward_op(grad, *tensors, ctx.residual, ctx.ring, row_ids, ctx.checkpoint_every, checkpoints)
    return (*grads, None, None, None, None, None, None)


def _save_mlp(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _mlp_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return (*mlp_backward_op(grad, *ctx.saved_tensors), None)


link_mix_op.register_autograd(_link_mix_gradients, setup_context=_save_link_mix)
paramix_op.register_autograd(_paramix_gradients, setup_context=_save_paramix)
mlp_op.register_autograd(_mlp_gradients, setup_context=_save_mlp)

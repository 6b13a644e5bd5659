"""Dropout whose mask is a hash of (seed, element): fast, stateless, equal for all backends and thread counts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from paramixer.ops.backends import select_backend
from paramixer.ops.chain import widen


@custom_op("paramixer::dropout", mutates_args=())
def dropout_op(values: Tensor, p: float, seed: Tensor) -> Tensor:
    """Set a fraction p of the values to zero and scale the others by 1 / (1 - p)."""
    backend = select_backend(values)
    dropped = backend.dropout(values if backend.takes_half else widen(values), p, int(seed))
    return dropped.to(values.dtype)


@dropout_op.register_fake
def _(values: Tensor, p: float, seed: Tensor) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Tensor, float, Tensor], output: Tensor) -> None:
    _, ctx.p, seed = inputs
    ctx.save_for_backward(seed)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return dropout_op(grad, ctx.p, *ctx.saved_tensors), None, None


dropout_op.register_autograd(_gradients, setup_context=_save)


class Dropout(torch.nn.Dropout):
    """torch's dropout with a faster mask. Every call draws one seed from torch's global generator."""

    def forward(self, values: Tensor) -> Tensor:
        """Apply dropout to values of any shape while training; return them unchanged otherwise."""
        if not self.training or self.p == 0:
            return values
        dropped: Tensor = dropout_op(values, self.p, torch.randint(2**62, (), device="cpu"))
        return dropped

"""Embeddings whose gradient is summed by the backend: torch's own sum takes longer than a whole block."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.library import custom_op

from paramixer.ops.backends import select_backend
from paramixer.ops.chain import widen


@custom_op("paramixer::lookup", mutates_args=())
def lookup_op(ids: Tensor, table: Tensor, pad: int | None) -> Tensor:
    """Return rows of the table; the row of pad gets no gradient."""
    return select_backend(widen(table[:0])).lookup(ids, table)


@custom_op("paramixer::lookup_backward", mutates_args=())
def lookup_backward_op(grad: Tensor, ids: Tensor, rows: int, pad: int | None) -> Tensor:
    """Return the gradient of the table."""
    wide = widen(grad).reshape(-1, grad.shape[-1])
    dtable = select_backend(wide).lookup_backward(wide, ids.long().reshape(-1), rows)
    if pad is not None:
        dtable[pad] = 0
    return dtable.to(grad.dtype)


@lookup_op.register_fake
def _(ids: Tensor, table: Tensor, pad: int | None) -> Tensor:
    return table.new_empty(*ids.shape, table.shape[1])


@lookup_backward_op.register_fake
def _(grad: Tensor, ids: Tensor, rows: int, pad: int | None) -> Tensor:
    return grad.new_empty(rows, grad.shape[-1])


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, int | None], output: Tensor) -> None:
    ids, table, ctx.pad = inputs
    ctx.rows = table.shape[0]
    ctx.save_for_backward(ids)


def _gradients(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
    return None, lookup_backward_op(grad, *ctx.saved_tensors, ctx.rows, ctx.pad), None


lookup_op.register_autograd(_gradients, setup_context=_save)


def lookup(ids: Tensor, table: Tensor, pad: int | None = None) -> Tensor:
    """Return rows ``[*ids, width]`` of a table ``[rows, width]``; the row of pad gets no gradient."""
    rows: Tensor = lookup_op(ids, table, pad)
    return rows


class Embedding(nn.Embedding):
    """torch's embedding with a faster gradient; the row of ``padding_idx`` gets none."""

    def forward(self, ids: Tensor) -> Tensor:
        """Return the rows with these ids."""
        return lookup(ids, self.weight, self.padding_idx)

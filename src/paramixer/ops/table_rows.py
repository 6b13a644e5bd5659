"""Rows of a large table: their sums, the row-sparse gradient of the table, and AdamW on the rows that have one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.backends import select_backend
from paramixer.ops.chain import widen


def bag(rows: Tensor, table: Tensor) -> Tensor:
    """Return the sums ``[..., width]`` of rows of a table.

    Args:
        rows: int32 ``[..., rows]``; -1 adds nothing.
        table: ``[table_rows, width]``. Its gradient is a coalesced sparse tensor; dense where the call is compiled.
    """
    if torch.compiler.is_compiling():
        # Sparse tensors do not trace.
        return F.embedding(rows.clamp(min=0), table).masked_fill((rows < 0)[..., None], 0).sum(-2)
    sums: Tensor = _Bag.apply(rows, table)  # type: ignore[no-untyped-call]
    return sums


def sum_by_row(rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct rows in ascending order, and for each the sum of its values.

    Args:
        rows: int32 ``[tokens, orders]``; each token's values go to all of its rows that are not -1.
        values: ``[tokens, width]``.

    Returns:
        int64 ``[distinct]`` and ``[distinct, width]``. The sums do not depend on the number of threads.
    """
    wide = widen(values)
    distinct, sums = select_backend(wide).bag_backward(wide, rows)
    return distinct, sums.to(values.dtype)


def update_rows_(
    table: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, grads: Tensor, step: AdamWStep
) -> None:
    """Apply one step of AdamW, in place, to these rows of a table and of its moments.

    Args:
        table: ``[table_rows, width]``, contiguous like its moments.
        exp_avg: the first moment, of the table's shape.
        exp_avg_sq: the second moment, of the table's shape.
        rows: int64 ``[rows]``, strictly ascending.
        grads: ``[rows, width]``.
        step: the factors of the step.
    """
    select_backend(widen(table[:0])).update_rows_(table, exp_avg, exp_avg_sq, rows, grads, step)


class _Bag(torch.autograd.Function):
    """No custom op: their gradients cannot be sparse."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.table_rows = table.shape[0]
        return select_backend(widen(table[:0])).bag(rows, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (rows,) = ctx.saved_tensors
        distinct, sums = sum_by_row(rows.flatten(0, -2), grad.flatten(0, -2))
        shape = (ctx.table_rows, grad.shape[-1])
        return None, torch.sparse_coo_tensor(distinct[None], sums, shape, is_coalesced=True, check_invariants=False)

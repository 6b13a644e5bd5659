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


def bag(rows: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the sums ``[..., width]`` of rows of a table.

    Args:
        rows: int32 ``[..., rows]``; -1 adds nothing.
        table: ``[table_rows, width]``. Its gradient is a coalesced sparse tensor; dense where the call is compiled.
        weights: of the shape of rows, what each is multiplied with; 1 by default. They get no gradient.
    """
    if weights is not None and weights.shape != rows.shape:
        raise ValueError(
            f"bag: weights has shape {list(weights.shape)}, rows {list(rows.shape)}; they must be the same"
        )
    if torch.compiler.is_compiling():
        # Sparse tensors do not trace.
        found = F.embedding(rows.clamp(min=0), table).masked_fill((rows < 0)[..., None], 0)
        return (found if weights is None else found * weights[..., None].to(found.dtype)).sum(-2)
    sums: Tensor = _Bag.apply(rows, table, weights)  # type: ignore[no-untyped-call]
    return sums


def sum_by_row(rows: Tensor, values: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the distinct rows in ascending order, and for each the weighted sum of its values.

    Args:
        rows: int32 ``[tokens, orders]``; each token's values go to all of its rows that are not -1.
        values: ``[tokens, width]``.
        weights: ``[tokens, orders]``; 1 by default.

    Returns:
        int64 ``[distinct]`` and ``[distinct, width]``. The sums do not depend on the number of threads.
    """
    wide = widen(values)
    distinct, sums = select_backend(wide).bag_backward(wide, rows, weights)
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
    def forward(ctx: Any, rows: Tensor, table: Tensor, weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weights)
        ctx.table_rows = table.shape[0]
        return select_backend(widen(table[:0])).bag(rows, table, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        rows, weights = ctx.saved_tensors
        factors = None if weights is None else weights.flatten(0, -2)
        distinct, sums = sum_by_row(rows.flatten(0, -2), grad.flatten(0, -2), factors)
        shape = (ctx.table_rows, grad.shape[-1])
        table = torch.sparse_coo_tensor(distinct[None], sums, shape, is_coalesced=True, check_invariants=False)
        return None, table, None

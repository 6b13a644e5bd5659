"""Row-sparse gradients: their one form, the optimizer that steps only their rows, and clipping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.lazy_zeros import lazy_zeros
from paramixer.ops.table_rows import sum_by_row, update_rows_

# Names of the two moments in the optimizer's state, as torch spells them.
MOMENTS = ("exp_avg", "exp_avg_sq")


class RowSparseAdamW(torch.optim.AdamW):
    """AdamW with groups of tables, marked ``row_sparse=True``, of which a step touches only rows with a gradient.

    The moments of other rows stay as they are, and weight decay leaves other rows alone: a step costs what its rows
    cost. Bias is corrected by the number of steps, not by how often a row occurred. The dense groups are torch's own.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        marked = [{"row_sparse": False, **group} for group in groups]
        super().__init__(marked, lr=lr, betas=betas, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step."""
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group["row_sparse"]]
            loss: float | None = super().step(closure)
        finally:
            self.param_groups = groups
        for group in groups:
            for parameter in group["params"] if group["row_sparse"] else ():
                if parameter.grad is not None:
                    self._step_rows(parameter, group)
        return loss

    def _step_rows(self, table: Tensor, group: dict[str, Any]) -> None:
        state = self.state[table]
        if not state:
            state["step"] = torch.tensor(0.0)
            for name in MOMENTS:
                state[name] = lazy_zeros(table.shape[0], table.shape[1], table.dtype, table.device)
        state["step"] += 1
        step = AdamWStep.at(int(state["step"]), group["lr"], group["betas"], group["eps"], group["weight_decay"])
        assert table.grad is not None
        exp_avg, exp_avg_sq = (state[name] for name in MOMENTS)
        update_rows_(table, exp_avg, exp_avg_sq, *split_rows(table.grad), step)


def row_sparse_tables(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """Return the parameters of which the optimizer touches only rows with a gradient."""
    return [table for group in optimizer.param_groups if group.get("row_sparse") for table in group["params"]]


def split_rows(grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of a gradient, int64 and strictly ascending, and their values ``[rows, width]``.

    Accumulated gradients hold a row several times; they are added. Of a dense gradient, which a compiled model gives,
    rows of zeros are left out.
    """
    if grad.layout is not torch.sparse_coo:
        rows = (grad != 0).any(1).nonzero().flatten()
        return rows, grad[rows]
    # Not by is_coalesced: torch forgets it when it stores a gradient.
    rows, values = grad._indices()[0], grad._values()
    if bool((rows[1:] > rows[:-1]).all()):
        return rows, values
    return sum_by_row(rows[:, None].int(), values)


def join_rows(rows: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Return the gradient of a table with these rows, int64 and strictly ascending."""
    return torch.sparse_coo_tensor(rows[None], values, table.shape, is_coalesced=True, check_invariants=False)


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> None:
    """Scale all gradients by one factor where their norm exceeds the limit.

    Rows of tables count like other gradients: a clipped step is the same whether the gradient of a table is stored as
    rows or whole. Left out, a table would take a burst of gradients unscaled into second moments that fade only when
    its rows come again.
    """
    pieces: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            rows, values = split_rows(parameter.grad)
            parameter.grad = join_rows(rows, values, parameter)
            pieces.append(values)
        else:
            pieces.append(parameter.grad)
    # The pieces stand for the gradients: the values are those in the sparse tensors.
    total = nn.utils.get_total_norm(pieces)
    scale = (limit / (total + 1e-6)).clamp(max=1.0)
    for piece in pieces:
        piece.mul_(scale)

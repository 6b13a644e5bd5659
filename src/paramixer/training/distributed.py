"""The processes of a run: one alone, or those that torchrun and ``accelerate launch`` start."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from paramixer.nn.ngrams import row_buffer_names, row_sparse_names
from paramixer.ops.table_rows import sum_by_row
from paramixer.training.device import training_device
from paramixer.training.row_sparse import join_rows, split_rows


def build_accelerator() -> Accelerator:
    """Return this process among its peers, on the device asked for or else on the best one there is.

    Left to itself, accelerate looks for peers on a machine without a GPU only when it is told to use the CPU; the
    processes of torchrun would each train alone there, and write over each other.
    """
    return Accelerator(cpu=training_device() == "cpu")


def prepare_model(model: nn.Module, accelerator: Accelerator) -> nn.Module:
    """Return the model on its device, wrapped for several processes where there are any.

    DistributedDataParallel is kept away from row-sparse tables, which it would reduce whole. All processes start with
    the same ones, and :func:`average_rows` keeps them equal.
    """
    if accelerator.num_processes > 1:
        ignore = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
        ignore(model, [*row_sparse_names(model), *row_buffer_names(model)])  # type: ignore[no-untyped-call]
    prepared: nn.Module = accelerator.prepare_model(model)
    return prepared


def average_rows(tables: Iterable[nn.Parameter], accelerator: Accelerator) -> None:
    """Replace the row-sparse gradients of each process by their mean over all processes."""
    if accelerator.num_processes == 1:
        return
    for table in tables:
        if table.grad is None:
            rows, values = torch.empty(0, dtype=torch.int64, device=table.device), table.new_empty(0, table.shape[1])
        else:
            rows, values = split_rows(table.grad)
        # Processes have different numbers of rows; -1 is no row.
        all_rows: Tensor = accelerator.gather(accelerator.pad_across_processes(rows, pad_index=-1))
        all_values: Tensor = accelerator.gather(accelerator.pad_across_processes(values))
        sums = sum_by_row(all_rows[:, None].int(), all_values / accelerator.num_processes)
        table.grad = join_rows(*sums, table)


def any_process(flag: bool, accelerator: Accelerator) -> bool:
    """Return whether the flag is set in any process: all of them must decide alike."""
    if accelerator.num_processes == 1:
        return flag
    votes = torch.tensor(float(flag), device=accelerator.device)
    return float(accelerator.reduce(votes, "sum")) > 0


def autocast(accelerator: Accelerator, precision: str) -> torch.autocast:
    """Return a context of bfloat16 autocast where it is asked for; accelerate's own is one for the whole process."""
    return torch.autocast(accelerator.device.type, torch.bfloat16, enabled=precision == "bf16")

"""A model's answers to a whole split, on one process or on many, each sequence exactly once and in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from paramixer.data.task import Sequences
from paramixer.training.batches import Collate, loaded, mine

Tick = Callable[[int], None]


def silent(count: int) -> None:
    """For callers who want no progress."""


@torch.no_grad()
def answers(
    model: nn.Module,
    sequences: Sequences,
    batch: int,
    collate: Collate,
    accelerator: Accelerator,
    workers: int = 0,
    precision: str = "float32",
    tick: Tick = silent,
) -> tuple[Tensor, Tensor]:
    """Answers ``[items, outputs]`` or ``[items]``, and targets ``[items]``, in the order of the split.

    Args:
        model: is put into evaluation mode, and back.
        sequences: the split.
        batch: sequences at a time.
        collate: how they become tensors.
        accelerator: which device, and which share of the work.
        workers: processes that load.
        precision: float32 or bf16.
        tick: told how many sequences are done; what it raises ends the look at them.
    """
    was_training = model.training
    model.eval()
    # By length, so that little is padded; the order is restored below.
    order = np.argsort(-np.asarray(sequences.lengths), kind="stable")
    own = mine(order, accelerator.process_index, accelerator.num_processes)
    found, targets = [], []
    parts = [own[start : start + batch] for start in range(0, len(own), batch)]
    try:
        for part in loaded(sequences, parts, collate, workers):
            inputs, lengths = part.inputs.to(accelerator.device), part.lengths
            with autocast(accelerator, precision):
                answer = model(inputs) if lengths is None else model(inputs, lengths.to(accelerator.device))
            found.append(answer.float().cpu())
            targets.append(part.targets)
            tick(len(inputs) * accelerator.num_processes)
    finally:
        model.train(was_training)
    together = _gathered(torch.cat(found) if found else torch.empty(0), order, accelerator)
    return together, _gathered(torch.cat(targets) if targets else torch.empty(0), order, accelerator)


def autocast(accelerator: Accelerator, precision: str) -> torch.autocast:
    """bf16 where it is wanted. Accelerate's own precision is one for the whole process."""
    return torch.autocast(accelerator.device.type, torch.bfloat16, enabled=precision == "bf16")


def _gathered(own: Tensor, order: np.ndarray, accelerator: Accelerator) -> Tensor:
    """Every process's share, back in the order of the split."""
    processes = accelerator.num_processes
    share = -(-len(order) // processes)
    if processes > 1:
        # Shares differ by one at most; the last row of a shorter one is a filler.
        filler = own.new_zeros(share - len(own), *own.shape[1:])
        own = accelerator.gather(torch.cat([own, filler]).to(accelerator.device)).cpu()
    ranks = [own[rank * share : (rank + 1) * share] for rank in range(processes)]
    result = torch.empty((len(order), *own.shape[1:]), dtype=own.dtype)
    for rank, part in enumerate(ranks):
        places = torch.from_numpy(order[rank::processes].copy())
        result[places] = part[: len(places)]
    return result

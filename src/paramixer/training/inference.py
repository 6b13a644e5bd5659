"""A model's answers to a whole split, on one process or on many, each sequence exactly once and in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from paramixer.data.task import Sequences
from paramixer.training.batches import Batch, Collate, load_batches, take_share
from paramixer.training.distributed import autocast
from paramixer.training.loop import call_model


@torch.no_grad()
def predict_split(
    model: nn.Module,
    sequences: Sequences,
    batch: int,
    collate: Collate,
    accelerator: Accelerator,
    workers: int = 0,
    precision: str = "float32",
    tick: Callable[[int], None] = lambda count: None,
    call: Callable[[nn.Module, Batch], Tensor] = call_model,
) -> tuple[Tensor, Tensor]:
    """Return answers ``[items, outputs]`` or ``[items]``, and targets ``[items]``, in the order of the split.

    Args:
        model: is put into evaluation mode, and back.
        sequences: the split.
        batch: batch size.
        collate: turns items into batches.
        accelerator: device and processes.
        workers: processes that load data.
        precision: float32 or bf16.
        tick: called with the number of sequences that are done; what it raises ends the prediction.
        call: what is asked of the model, by default its answers.
    """
    # A model that was loaded and not prepared lies on the CPU, also where there is a GPU.
    device = next((parameter.device for parameter in model.parameters()), accelerator.device)
    was_training = model.training
    model.eval()
    # By length, so that little is padded; the order is restored below.
    order = np.argsort(-np.asarray(sequences.lengths), kind="stable")
    share = take_share(order, accelerator.process_index, accelerator.num_processes)
    answers, targets = [], []
    parts = [share[start : start + batch] for start in range(0, len(share), batch)]
    try:
        for part in load_batches(sequences, parts, collate, workers, device.type == "cuda"):
            with autocast(accelerator, precision):
                answer = call(model, part.to(device))
            answers.append(answer.float().cpu())
            targets.append(part.targets)
            tick(len(part.targets) * accelerator.num_processes)
    finally:
        model.train(was_training)
    both = (torch.cat(parts) if parts else torch.empty(0) for parts in (answers, targets))
    ordered_answers, ordered_targets = (_gather(tensor, order, accelerator) for tensor in both)
    return ordered_answers, ordered_targets


def _gather(share: Tensor, order: np.ndarray, accelerator: Accelerator) -> Tensor:
    """Return every process's share, in the order of the split."""
    processes = accelerator.num_processes
    size = -(-len(order) // processes)
    if processes > 1:
        # Shares differ by one at most; the last row of a shorter one is a filler.
        filler = share.new_zeros(size - len(share), *share.shape[1:])
        share = accelerator.gather(torch.cat([share, filler]).to(accelerator.device)).cpu()
    result = torch.empty((len(order), *share.shape[1:]), dtype=share.dtype)
    for rank in range(processes):
        places = torch.from_numpy(order[rank::processes].copy())
        result[places] = share[rank * size : rank * size + len(places)]
    return result

"""How long an optimizer step takes, measured before training on a copy of the model."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np
import torch

from paramixer.data.task import Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.assessment.metrics import compute_loss
from paramixer.training.batches import TrainingBatches, build_collate
from paramixer.training.distributed import autocast, build_accelerator
from paramixer.training.loop import call_model
from paramixer.training.optimizer import build_optimizer
from paramixer.training.options import TrainingOptions

# Steps that are timed after a first one, in which memory is allocated, and the seconds after which no other begins.
_STEPS, _SECONDS = 2, 3.0


def measure_step(model: PretrainedModel, task: Task, options: TrainingOptions, seed: int) -> float:
    """Return the seconds of an average optimizer step. Neither the model nor random numbers are touched.

    Sequences of a batch are about equally long, and a few batches say little about the others. So steps are timed for
    each position.

    Args:
        model: before training.
        task: the data.
        options: complete training options.
        seed: of the order of the sequences.
    """
    assert options.batch is not None
    accelerator = build_accelerator()
    batches = TrainingBatches(
        sequences=task.train,
        collate=build_collate(task, model.config),
        batch=options.batch,
        accumulate=options.accumulate,
        seed=seed,
        bucket=options.bucket,
    )
    usual = min(options.batch * options.accumulate, len(task.train)) * float(
        np.minimum(task.train.lengths, task.length).mean()
    )
    seconds: list[float] = []
    positions: list[float] = []
    with _aside(model) as twin:
        twin.to(accelerator.device).train()
        optimizer = build_optimizer(twin, options)
        for step in islice(batches.steps(0), _STEPS + 1):
            begin, seen = time.monotonic(), 0.0
            for part, weight in step.parts:
                batch = part.to(accelerator.device)
                # A model that takes no lengths reads all batches at the same one.
                seen += usual / len(step.parts) if part.lengths is None else float(part.lengths.sum())
                with autocast(accelerator, options.precision):
                    answers = call_model(twin, batch)
                (compute_loss(answers, batch.targets) * weight).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            if accelerator.device.type == "cuda":
                torch.cuda.synchronize(accelerator.device)
            seconds.append(time.monotonic() - begin)
            positions.append(seen)
            if sum(seconds) > _SECONDS:
                break
    timed = slice(1 if len(seconds) > 1 else 0, None)
    return usual * sum(seconds[timed]) / max(1.0, sum(positions[timed]))


@contextmanager
def _aside(model: PretrainedModel) -> Iterator[PretrainedModel]:
    with torch.random.fork_rng():
        yield copy.deepcopy(model)

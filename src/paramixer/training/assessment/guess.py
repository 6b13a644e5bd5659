"""The answer that knows nothing of the sequences: the shares of the classes in train, or the mean of its values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paramixer.data.task import Sequences, Task
from paramixer.training.assessment.metrics import compute_loss


def guess(task: Task, count: int) -> Tensor:
    """Return the answers to so many sequences: logits of the classes, or values."""
    targets = np.asarray(task.train.targets)
    if task.target == "value":
        return torch.full((count,), float(targets.mean()))
    return log_shares(targets, task.outputs).repeat(count, 1)


def describe_guess(task: Task) -> str:
    """Return what the guess does, in words."""
    return "answering the mean" if task.target == "value" else "answering the largest class"


def measure_guess_loss(task: Task) -> float:
    """Return the loss of the guess on validation, the scale on which losses of the task are large or small."""
    if task.metric == "balanced_accuracy":
        return math.log(task.outputs)
    return float(compute_loss(guess(task, len(task.validation)), read_targets(task.validation, task)))


def log_shares(targets: NDArray[Any], outputs: int) -> Tensor:
    """Return the logarithms of the classes' shares ``[outputs]``."""
    shares = np.bincount(targets, minlength=outputs) / len(targets)
    return torch.from_numpy(np.log(np.maximum(shares, 1e-9)).astype(np.float32))


def read_targets(split: Sequences, task: Task) -> Tensor:
    """Return the targets of a split: integers for classes."""
    kind = np.int64 if task.target == "class" else np.float32
    return torch.from_numpy(np.asarray(split.targets).astype(kind))

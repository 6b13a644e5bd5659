"""How much each training sequence counts: the weights of the data, and those that make classes count alike."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.task import Sequences, Task, TaskInfo


def training_weights(task: Task, balance: bool = False) -> NDArray[np.float64] | None:
    """Return a weight for every training sequence, 1 on average; None where all count alike.

    Args:
        task: the data; its train split may have ``weights``.
        balance: whether classes count alike: each sequence gets n / (classes * n of its class) times its weight.
    """
    weights = _read_weights(task.train)
    if balance:
        check_balance(task)
        weights = _balance_classes(np.asarray(task.train.targets)) * (1.0 if weights is None else weights)
    return None if weights is None else weights / weights.mean()


def judge_classes(task: Task, balance: bool) -> Task:
    """Return the task as it is judged: where classes count alike in training, they do in its accuracy, too."""
    counts_answers = task.target == "class" and task.metric in ("accuracy", "error")
    return dataclasses.replace(task, metric="balanced_accuracy") if balance and counts_answers else task


def check_balance(task: TaskInfo) -> None:
    """Raise a ValueError for a task whose classes cannot count alike because it has none."""
    if task.target != "class":
        raise ValueError(f"--balance (balance=True) is for classes, but {task.display_name} has values; leave it out")


def _read_weights(sequences: Sequences) -> NDArray[np.float64] | None:
    given: Any = getattr(sequences, "weights", None)
    if given is None:
        return None
    weights = np.asarray(given, np.float64)
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        raise ValueError(f"the weight of training sequence {wrong[0]} is {weights[wrong[0]]}; it must not be negative")
    if not weights.any():
        raise ValueError("all training sequences have weight 0; give some a weight above 0")
    return weights


def _balance_classes(targets: NDArray[Any]) -> NDArray[np.float64]:
    counts = np.bincount(targets)
    shares: NDArray[np.float64] = len(targets) / (np.count_nonzero(counts) * counts[targets])
    return shares

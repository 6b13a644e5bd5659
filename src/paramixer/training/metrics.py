"""Metrics of a whole split at once, so that nothing depends on how it was cut into batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Metric:
    """A number for predictions ``[items, outputs]`` or ``[items]`` and targets ``[items]``."""

    measure: Callable[[Tensor, Tensor], float]
    higher_is_better: bool

    def is_better(self, one: float, other: float | None) -> bool:
        """Return whether the first is better; NaN never is."""
        if other is None:
            return one == one
        return one > other if self.higher_is_better else one < other

    def has_reached(self, value: float, goal: float) -> bool:
        """Return whether a value is at least as good as a goal."""
        return value >= goal if self.higher_is_better else value <= goal


# In the paper's Adding problem a prediction is wrong if it is off by this much or more.
_TOLERANCE = 0.04


def _accuracy(answers: Tensor, targets: Tensor) -> float:
    return float((answers.argmax(-1) == targets).double().mean())


def _error(answers: Tensor, targets: Tensor) -> float:
    if answers.dim() == 2:
        return 1 - _accuracy(answers, targets)
    return float(((answers - targets).abs() >= _TOLERANCE).double().mean())


def _roc_auc(answers: Tensor, targets: Tensor) -> float:
    """ROC AUC of the second of two classes; of more classes the mean of each against the rest."""
    from sklearn.metrics import roc_auc_score

    scores: NDArray[np.float64] = answers.double().softmax(-1).numpy()
    labels = targets.numpy()
    if len(np.unique(labels)) < scores.shape[1]:
        return float("nan")
    if scores.shape[1] == 2:
        return float(roc_auc_score(labels, (answers[:, 1] - answers[:, 0]).double().numpy()))
    return float(roc_auc_score(labels, scores, multi_class="ovr"))


def _mse(answers: Tensor, targets: Tensor) -> float:
    return float((answers.double() - targets.double()).square().mean())


METRICS = {
    "accuracy": Metric(_accuracy, True),
    "error": Metric(_error, False),
    "roc_auc": Metric(_roc_auc, True),
    "mse": Metric(_mse, False),
    "loss": Metric(lambda answers, targets: float(compute_loss(answers, targets)), False),
}


def compute_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of classes, or the mean squared error of values."""
    if targets.dtype == torch.int64:
        return F.cross_entropy(answers.float(), targets)
    return F.mse_loss(answers.float(), targets.float())


def compute_metrics(answers: Tensor, targets: Tensor, metric: str) -> dict[str, float]:
    """Return loss and metric."""
    return {"loss": METRICS["loss"].measure(answers, targets), metric: METRICS[metric].measure(answers, targets)}

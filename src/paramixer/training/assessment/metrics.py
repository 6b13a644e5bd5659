"""Metrics of a whole split at once, so that nothing depends on how it was cut into batches."""

from __future__ import annotations

import math
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
    most: float = 1.0
    """The largest value that there is; the least is 0."""

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


def is_right(answers: Tensor, targets: Tensor) -> Tensor:
    """Return whether each class is right, or each value is off by less than the Adding problem's 0.04."""
    return answers.argmax(-1) == targets if answers.dim() == 2 else (answers - targets).abs() < _TOLERANCE


def _accuracy(answers: Tensor, targets: Tensor) -> float:
    return float((answers.argmax(-1) == targets).double().mean())


def _balanced_accuracy(answers: Tensor, targets: Tensor) -> float:
    """Return the mean of the classes' accuracies, of those that occur."""
    right = (answers.argmax(-1) == targets).double()
    return float(np.mean([float(right[targets == name].mean()) for name in np.unique(targets.numpy())]))


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
    "balanced_accuracy": Metric(_balanced_accuracy, True),
    "error": Metric(_error, False),
    "roc_auc": Metric(_roc_auc, True),
    "mse": Metric(_mse, False, math.inf),
    "loss": Metric(lambda answers, targets: float(compute_loss(answers, targets)), False, math.inf),
}


def describe_name(metric: str) -> str:
    """Return the name of a metric in messages."""
    return metric.replace("_", " ") if metric == "balanced_accuracy" else metric


def format_number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits behind the point, or with one more in all where it is larger or smaller."""
    usual = value == 0 or 10**-digits <= abs(value) < 1000
    return f"{value:.{digits}f}" if usual else f"{value:.{digits + 1}g}"


def compute_loss(
    answers: Tensor, targets: Tensor, weights: Tensor | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """Return the cross entropy of classes, or the mean squared error of values.

    Args:
        answers: ``[items, outputs]`` or ``[items]``.
        targets: ``[items]``, integers for classes.
        weights: ``[items]``; the loss is the mean of weights times losses. They should be 1 on average.
        label_smoothing: the share of every class's target that goes to all classes alike.
    """
    reduction = "mean" if weights is None else "none"
    if targets.dtype == torch.int64:
        loss = F.cross_entropy(answers.float(), targets, reduction=reduction, label_smoothing=label_smoothing)
    else:
        loss = F.mse_loss(answers.float(), targets.float(), reduction=reduction)
    return loss if weights is None else (loss * weights).mean()


def compute_metrics(answers: Tensor, targets: Tensor, metric: str, balanced: bool = False) -> dict[str, float]:
    """Return loss and metric; of classes also the balanced accuracy if it is asked for, with the accuracy beside it."""
    names = ["loss", metric]
    if balanced and targets.dtype == torch.int64:
        names += ["balanced_accuracy"]
    if "balanced_accuracy" in names:
        names += ["accuracy"]
    return {name: METRICS[name].measure(answers, targets) for name in names}

"""Logistic regression of a matrix of features: scikit-learn's, ended where more steps change nothing."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Fitting ends where all slopes are this share of the largest one at the start.
_TOLERANCE = 3e-2


class LinearClassifier(NamedTuple):
    """Weights of a linear layer."""

    weight: NDArray[np.float32]
    """``[classes, columns]``."""
    bias: NDArray[np.float32]
    """``[classes]``; a class that the training rows lack has -1e9, and is never answered."""

    def predict(self, rows: Any) -> Tensor:
        """Return logits ``[rows, classes]``."""
        return torch.from_numpy(np.ascontiguousarray(np.asarray(rows @ self.weight.T, np.float32) + self.bias))


def fit_classes(
    rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None, outputs: int, strength: float
) -> LinearClassifier:
    """Fit logistic regression.

    Args:
        rows: dense or sparse, ``[items, columns]``.
        targets: ``[items]``, of at least two classes.
        weights: of the items, or None.
        outputs: the number of classes.
        strength: the inverse strength of the penalty on the weights.
    """
    from scipy.sparse import issparse
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    known = np.unique(targets)
    # Most columns belong to n-grams that never occur; their weights stay zero.
    used: Any = np.unique(rows.indices) if issparse(rows) else slice(None)
    with warnings.catch_warnings():
        # More iterations do not help validation.
        warnings.simplefilter("ignore", ConvergenceWarning)
        tol = _TOLERANCE * _largest_slope(rows[:, used], targets, weights)
        fitted = LogisticRegression(C=strength, tol=tol, max_iter=200).fit(rows[:, used], targets, weights)
    # For two classes there is one row, that of the second.
    both = len(fitted.coef_) == 1
    found = np.concatenate([np.zeros_like(fitted.coef_), fitted.coef_]) if both else fitted.coef_
    weight = np.zeros((outputs, rows.shape[1]), np.float32)
    weight[np.ix_(known, np.arange(rows.shape[1])[used])] = found
    bias = np.full(outputs, -1e9, np.float32)
    bias[known] = np.concatenate([[0.0], fitted.intercept_]) if both else fitted.intercept_
    return LinearClassifier(weight, bias)


def _largest_slope(rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None) -> float:
    """Return the largest derivative of the mean loss by a weight, where every class has its share.

    scikit-learn compares the slopes with its tolerance. Those of long texts are all small, so that a fixed tolerance
    would end the fit before its first step.
    """
    members = (targets[:, None] == np.unique(targets)).astype(np.float64)
    counts = np.ones(len(targets)) if weights is None else weights
    excess = (members - np.average(members, 0, counts)) * (counts / counts.sum())[:, None]
    return max(float(np.abs(rows.T @ excess).max()), 1e-9)

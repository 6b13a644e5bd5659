"""How sure a metric is: 95 % intervals of metrics, and of the difference of two models on the same sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from paramixer.training.assessment.metrics import METRICS, is_right

NORMAL = 1.959963984540054
"""The quantile of the normal distribution that belongs to 95 %."""
_SEED, _RESAMPLES = 0, 1000
# Counts of resampled sequences that are held at a time.
_CHUNK = 2**22

Interval = tuple[float, float]
_Weighted = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Takes counts ``[resamples, items]``; returns the metric of every resample."""


class Difference(NamedTuple):
    """By how much one model is better than another on the same sequences; above 0 the first is."""

    value: float
    low: float
    high: float


def wilson(right: int, count: int) -> Interval:
    """Return the Wilson interval of a share."""
    if not count:
        return 0.0, 1.0
    share, square = right / count, NORMAL**2
    center = (share + square / (2 * count)) / (1 + square / count)
    width = NORMAL * math.sqrt(share * (1 - share) / count + square / (4 * count**2)) / (1 + square / count)
    return max(0.0, center - width), min(1.0, center + width)


def measure_interval(metric: str, answers: Tensor, targets: Tensor) -> Interval | None:
    """Return the 95 % interval of a metric: Wilson's for a share, by bootstrap with a fixed seed for others.

    That of a balanced accuracy adds up the squared distances to the ends of its classes' intervals.

    Args:
        metric: its name.
        answers: ``[items, outputs]`` or ``[items]``.
        targets: ``[items]``.

    Returns:
        None where the metric has no value, as the ROC AUC of one class.
    """
    if metric in ("accuracy", "error"):
        right = int(is_right(answers, targets).sum())
        return wilson(right if metric == "accuracy" else len(targets) - right, len(targets))
    if metric == "balanced_accuracy":
        hits = is_right(answers, targets).numpy()
        classes = [hits[targets.numpy() == name] for name in np.unique(targets)]
        interval = combine_intervals([(float(one.mean()), wilson(int(one.sum()), len(one))) for one in classes])
    elif (resampled := _quantiles(_resample(_weigh(metric, answers, targets), len(targets)))) is None:
        return None
    else:
        interval = _widen(resampled, targets) if metric == "roc_auc" else resampled
    return max(interval[0], 0.0), min(interval[1], METRICS[metric].most)


def combine_intervals(parts: Sequence[tuple[float, Interval]]) -> Interval:
    """Return the interval of the mean of independent values, each with its interval (Donner and Zou 2012)."""
    mean = math.fsum(value for value, _ in parts) / len(parts)
    below, above = (math.hypot(*(value - ends[side] for value, ends in parts)) / len(parts) for side in (0, 1))
    return mean - below, mean + above


def measure_difference(metric: str, answers: Tensor, others: Tensor, targets: Tensor) -> Difference | None:
    """Return by how much the first answers are better than others to the same sequences, and its 95 % interval.

    Both are measured on the same sequences, so that those that both find hard do not widen the interval. Shares of
    right answers have the interval of Bonett and Price (2012), others are measured on the same resamples.
    """
    if metric in ("accuracy", "error", "balanced_accuracy"):
        groups = targets.numpy() if metric == "balanced_accuracy" else np.zeros(len(targets))
        return _compare_shares(is_right(answers, targets).numpy(), is_right(others, targets).numpy(), groups)
    first, second = _weigh(metric, answers, targets), _weigh(metric, others, targets)
    sign = 1 if METRICS[metric].higher_is_better else -1
    everything = np.ones((1, len(targets)))
    interval = _quantiles(_resample(lambda counts: sign * (first(counts) - second(counts)), len(targets)))
    value = float(sign * (first(everything) - second(everything))[0])
    if interval is None or math.isnan(value):
        return None
    return Difference(value, *(_widen(interval, targets) if metric == "roc_auc" else interval))


def _compare_shares(first: NDArray[np.bool_], second: NDArray[np.bool_], groups: NDArray[Any]) -> Difference:
    """Return the difference of two shares of the same items, or of their means over groups.

    One more item is counted that only the first has right, and one that only the second has: models that agree on few
    items may differ on others.
    """
    values, centers, variances = [], [], []
    for name in np.unique(groups):
        inside = groups == name
        wins, losses = (int((one & ~other & inside).sum()) for one, other in ((first, second), (second, first)))
        count = int(inside.sum())
        center = (wins - losses) / (count + 2)
        values.append((wins - losses) / count)
        centers.append(center)
        variances.append(((wins + losses + 2) / (count + 2) - center**2) / (count + 2))
    center, width = float(np.mean(centers)), NORMAL * math.sqrt(sum(variances)) / len(values)
    return Difference(float(np.mean(values)), max(-1.0, center - width), min(1.0, center + width))


def _widen(interval: Interval, targets: Tensor) -> Interval:
    """Return an interval that is not a point: where all resamples agree, 3 of n in the smallest class may differ."""
    low, high = interval
    margin = 3 / int(np.unique(targets, return_counts=True)[1].min()) if low == high else 0.0
    return low - margin, high + margin


def _resample(measure: _Weighted, items: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(_SEED)
    shares = np.full(items, 1 / items)
    size = max(1, _CHUNK // items)
    parts = (
        measure(generator.multinomial(items, shares, min(size, _RESAMPLES - start)).astype(np.float64))
        for start in range(0, _RESAMPLES, size)
    )
    return np.concatenate(list(parts))


def _quantiles(values: NDArray[np.float64]) -> Interval | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


def _weigh(metric: str, answers: Tensor, targets: Tensor) -> _Weighted:
    """Return a function from counts of the items to the metric."""
    if metric == "roc_auc":
        return _weigh_roc_auc(answers, targets)
    scores = (answers.double() - targets.double()).square().numpy()
    return lambda counts: (counts @ scores) / counts.sum(1)


def _weigh_roc_auc(answers: Tensor, targets: Tensor) -> _Weighted:
    logits, labels = answers.double(), targets.numpy()
    if logits.shape[1] == 2:
        return _weigh_ranks((logits[:, 1] - logits[:, 0]).numpy(), labels == 1)
    scores = logits.softmax(-1).numpy()
    each = [_weigh_ranks(scores[:, name], labels == name) for name in range(scores.shape[1])]
    return lambda counts: np.mean([measure(counts) for measure in each], 0)


def _weigh_ranks(scores: NDArray[Any], positive: NDArray[np.bool_]) -> _Weighted:
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    is_positive = positive[order]

    def measure(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        ordered = counts[:, order]
        # Equal scores form a group, within which a positive is above half of the negatives.
        above = np.add.reduceat(ordered * is_positive, starts, 1)
        below = np.add.reduceat(ordered * ~is_positive, starts, 1)
        pairs: NDArray[np.float64] = (above * (np.cumsum(below, 1) - below / 2)).sum(1)
        areas: NDArray[np.float64] = pairs / _nan_zero(above.sum(1) * below.sum(1))
        return areas

    return measure


def _nan_zero(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values == 0, np.nan, values)

"""The simple model that stands beside a run: counts of n-grams, or numbers, and one linear layer.

It is fitted in seconds on the same splits, so that a user sees what the sequence model adds.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paramixer.baselines import registry
from paramixer.data.progress import Progress, no_progress
from paramixer.data.rng import permutation
from paramixer.data.task import Sequences, Task
from paramixer.training.assessment.guess import guess, log_shares, read_targets
from paramixer.training.assessment.intervals import measure_interval
from paramixer.training.assessment.linear import fit_classes
from paramixer.training.assessment.metrics import METRICS, compute_loss, describe_name, format_number
from paramixer.training.weights import training_weights

# Positions and numbers of the training sequences at most; of larger data a random part is taken.
_POSITIONS = 2**24
# Sequences of at most so many numbers, all equally long, are taken number by number.
_MOST_NUMBERS = 4096
# Inverse strengths of the penalty on the weights, for rows of norm 1 and for standardized columns.
COUNT_STRENGTHS, _NUMBER_STRENGTHS = (1.0, 10.0, 100.0), (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_CHUNK = 256
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_BANDS = 8


@dataclass(frozen=True)
class Baseline:
    """A simple model's results on a task."""

    name: str
    """Of the model: "n-grams", "linear model of the values" or "linear model of statistics"."""
    metric: str
    """The task's metric."""
    validation: float
    """The metric on validation, by which its settings were chosen."""
    validation_loss: float
    """The loss there."""
    test: float
    """The metric on test."""
    guess: float
    """The metric on test of always answering the largest class, or the mean."""
    guess_name: str
    """"majority" or "mean"."""
    seconds: float
    """What fitting took."""
    fitted: int
    """Training sequences that it was fitted on."""
    interval: tuple[float, float] | None
    """The 95 % interval of the metric on test."""
    answers: Tensor | None = None
    """Answers to the test sequences; None where they are not known any more."""

    def document(self) -> dict[str, Any]:
        """Return what a record holds: everything but the answers."""
        fields = {name: value for name, value in vars(self).items() if name != "answers"}
        return {**fields, "interval": None if self.interval is None else list(self.interval)}

    @classmethod
    def from_document(cls, document: dict[str, Any], answers: Tensor | None = None) -> Baseline:
        """Return what :meth:`document` wrote."""
        interval = None if document["interval"] is None else tuple(document["interval"])
        return cls(**{**document, "interval": interval}, answers=answers)

    def describe(self, sequences: int) -> str:
        """Return its results in one line.

        Args:
            sequences: how many the train split has.
        """
        part = f" on {self.fitted:,} of {sequences:,} training sequences" if self.fitted < sequences else ""
        validation, test, guess = (format_number(value, 4) for value in (self.validation, self.test, self.guess))
        return (
            f"baseline: {self.name}{part}: {describe_name(self.metric)} {validation} on validation, {test} on test; "
            f"{self.guess_name} {guess}; {self.seconds:.0f} s"
        )


def fit_baseline(task: Task, *, balance: bool = False, seed: int = 0, progress: Progress = no_progress) -> Baseline:
    """Fit every simple model that suits the data, choose on validation, evaluate test once.

    Args:
        task: the data; its metric chooses.
        balance: whether classes count alike.
        seed: of the choice of training sequences, where there are too many.
        progress: shows progress.
    """
    begin = time.monotonic()
    chosen = _choose_sequences(task.train, max(1, task.features or 1), seed)
    weights = training_weights(task, balance)
    weights = None if weights is None else weights[chosen]
    targets = np.asarray(task.train.targets)[chosen]
    if weights is not None and not weights.any():
        weights = None
    wanted = read_targets(task.validation, task)
    best: tuple[float, float, str, Callable[[Any], Tensor], _Features] | None = None
    for name, features, strengths in _choose_features(task, seed):
        train = features.fit(task.train, chosen, progress)
        validation = features.read(task.validation, "validation", progress)
        for strength in progress(strengths, f"baseline: fitting {name}"):
            predict = _solve(task, train, targets, weights, strength)
            answers = predict(validation)
            value = METRICS[task.metric].measure(answers, wanted)
            # A metric may have no value, as the ROC AUC of one class.
            known = None if best is None or math.isnan(best[0]) else best[0]
            if best is None or METRICS[task.metric].is_better(value, known):
                best = value, float(compute_loss(answers, wanted)), name, predict, features
    assert best is not None
    value, loss, name, predict, features = best
    answers = predict(features.read(task.test, "test", progress))
    labels, guessed = read_targets(task.test, task), guess(task, len(task.test))
    return Baseline(
        name=name,
        metric=task.metric,
        validation=value,
        validation_loss=loss,
        test=METRICS[task.metric].measure(answers, labels),
        guess=METRICS[task.metric].measure(guessed, labels),
        guess_name="majority" if task.target == "class" else "mean",
        seconds=time.monotonic() - begin,
        fitted=len(chosen),
        interval=measure_interval(task.metric, answers, labels),
        answers=answers,
    )


class _Features(ABC):
    """Turns sequences into rows of a matrix; ``fit`` learns from train what is needed for that."""

    def fit(self, train: Sequences, chosen: NDArray[np.int64], progress: Progress) -> Any:
        """Return the rows of the chosen training sequences."""
        return self.scale(self.rows(train, chosen, "train", progress), fitting=True)

    def read(self, split: Sequences, name: str, progress: Progress) -> Any:
        """Return the rows of a split."""
        return self.scale(self.rows(split, np.arange(len(split)), name, progress), fitting=False)

    @abstractmethod
    def rows(self, split: Sequences, chosen: NDArray[np.int64], name: str, progress: Progress) -> Any:
        """Return the features of the chosen sequences, before they are scaled."""

    @abstractmethod
    def scale(self, rows: Any, fitting: bool) -> Any:
        """Return scaled features; where it is fitting, the scale is that of these rows."""


class _Ngrams(_Features):
    """Counts of n-grams; rare ones count more."""

    def __init__(self, task: Task) -> None:
        assert task.vocabulary is not None
        # Of values only the counts are used.
        config = registry.BaselineConfig(
            model="ngrams", length=task.length, vocabulary=len(task.vocabulary), outputs=max(2, task.outputs)
        )
        self._model: Any = registry.build(config)

    def rows(self, split: Sequences, chosen: NDArray[np.int64], name: str, progress: Progress) -> Any:
        from scipy.sparse import vstack

        chunks = _read_chunks(split, chosen, f"baseline: counting {name}", progress)
        return vstack([self._model.count_ngrams(chunk) for chunk in chunks], format="csr")

    def scale(self, rows: Any, fitting: bool) -> Any:
        if fitting:
            self._model.learn_rarity(rows)
        return self._model.weigh(rows)


class _Numbers(_Features):
    """Numbers of a sequence, each column standardized by its mean and spread over train."""

    def __init__(self, describe: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        self._describe = describe
        self._mean = self._spread = np.zeros(0)

    def rows(self, split: Sequences, chosen: NDArray[np.int64], name: str, progress: Progress) -> Any:
        chunks = _read_chunks(split, chosen, f"baseline: reading {name}", progress)
        described = [
            self._describe(sequence.reshape(len(sequence), -1).astype(np.float64))
            for chunk in chunks
            for sequence in chunk
        ]
        return np.array(described, np.float32)

    def scale(self, rows: Any, fitting: bool) -> Any:
        if fitting:
            self._mean, self._spread = rows.mean(0), rows.std(0)
            self._spread[self._spread < 1e-12] = 1
        return (rows - self._mean) / self._spread


def _choose_features(task: Task, seed: int) -> Iterator[tuple[str, _Features, tuple[float, ...]]]:
    if task.vocabulary is not None:
        yield "n-grams", _Ngrams(task), COUNT_STRENGTHS
    if task.vocabulary is not None and task.vocabulary.unit != "number":
        return
    lengths = np.concatenate([np.asarray(split.lengths) for split in task.splits.values()])
    if len(np.unique(lengths)) == 1 and lengths[0] * (task.features or 1) <= _MOST_NUMBERS:
        yield "linear model of the values", _Numbers(lambda sequence: sequence.reshape(-1)), _NUMBER_STRENGTHS
    yield "linear model of statistics", _Numbers(describe_signal), _NUMBER_STRENGTHS


def describe_signal(sequence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return statistics of numbers ``[length, features]``: moments, quantiles, correlation of neighbors, spectrum."""
    centered = sequence - sequence.mean(0)
    variance = (centered**2).mean(0)
    products = (centered[1:] * centered[:-1]).sum(0) / len(sequence)
    power = np.abs(np.fft.rfft(centered, axis=0)) ** 2 / len(sequence)
    # Bands whose edges grow by a constant factor; the mean is left out.
    edges = np.unique(np.geomspace(1, max(2, len(power)), _BANDS + 1).round().astype(int))
    bands = np.zeros((_BANDS, sequence.shape[1]))
    for number, (low, high) in enumerate(pairwise(edges)):
        bands[number] = np.log(power[low:high].sum(0) + 1e-12) if low < len(power) else 0
    rows = [
        sequence.mean(0),
        np.sqrt(variance),
        sequence.min(0),
        sequence.max(0),
        *np.quantile(sequence, _QUANTILES, axis=0),
        products / np.maximum(variance, 1e-12),
        *bands,
    ]
    return np.concatenate(rows)


def _choose_sequences(train: Sequences, features: int, seed: int) -> NDArray[np.int64]:
    """Return the indices of the training sequences, or of a random part that is small enough."""
    order = permutation(len(train), seed)
    positions = np.cumsum(np.asarray(train.lengths)[order] * features)
    count = max(1, int(np.searchsorted(positions, _POSITIONS, "right")))
    return np.sort(order[:count])


def _read_chunks(
    split: Sequences, chosen: NDArray[np.int64], what: str, progress: Progress
) -> Iterator[list[NDArray[Any]]]:
    parts = [chosen[start : start + _CHUNK] for start in range(0, len(chosen), _CHUNK)]
    for part in progress(parts, what):
        yield [item.inputs.numpy() for item in split.__getitems__(part.tolist())]


def _solve(
    task: Task, rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None, strength: float
) -> Callable[[Any], Tensor]:
    """Return a function from rows to answers, as a model gives them."""
    from scipy.sparse import issparse
    from sklearn.linear_model import Ridge

    if task.target == "class":
        if len(np.unique(targets)) < 2:
            return lambda other: log_shares(targets, task.outputs).repeat(other.shape[0], 1)
        return fit_classes(rows, targets, weights, task.outputs, strength).predict
    # Most columns belong to n-grams that never occur.
    used: Any = np.unique(rows.indices) if issparse(rows) else slice(None)
    ridge = Ridge(alpha=1 / strength, tol=1e-3, max_iter=200).fit(rows[:, used], targets, weights)
    return lambda other: torch.from_numpy(np.asarray(ridge.predict(other[:, used]), np.float32))

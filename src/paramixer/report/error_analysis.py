"""Predictions of a model on the test split: confusion matrix, ROC curve, calibration, and the largest errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, roc_curve
from torch import Tensor

from paramixer.data.progress import Progress, no_progress
from paramixer.data.task import Sequences, Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.assessment.metrics import compute_metrics
from paramixer.training.batches import build_collate
from paramixer.training.distributed import build_accelerator
from paramixer.training.inference import predict_split

_CALIBRATION_BINS = 10
# Mistakes listed on the page.
_MAX_MISTAKES = 6


@dataclass(frozen=True)
class Predictions:
    """Model outputs and targets of some sequences of the test split."""

    indices: NDArray[np.int64]
    """``[sequences]``: indices into the test split."""
    test_size: int
    """Number of sequences in the test split."""
    outputs: Tensor
    """Logits ``[sequences, classes]``, or values ``[sequences]``."""
    targets: Tensor
    """``[sequences]``."""
    metrics: dict[str, float]
    """Loss and metric on these sequences."""
    losses: NDArray[np.float64]
    """``[sequences]``: loss of each sequence."""

    @property
    def are_classes(self) -> bool:
        """Whether the model predicts classes."""
        return self.outputs.dim() == 2

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """``[sequences, classes]``."""
        return self.outputs.double().softmax(-1).numpy()

    def compute_confusion(self) -> NDArray[np.int64]:
        """Return the counts ``[label, prediction]``."""
        classes = self.outputs.shape[1]
        counts: NDArray[np.int64] = confusion_matrix(
            self.targets.numpy(), self.outputs.argmax(-1).numpy(), labels=range(classes)
        )
        return counts

    def compute_roc(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return false and true positive rates of the second class; None unless both of two classes have labels."""
        if not self.are_classes or self.outputs.shape[1] != 2 or self.targets.min() == self.targets.max():
            return None
        scores = (self.outputs[:, 1] - self.outputs[:, 0]).numpy()
        false_positives, true_positives, _ = roc_curve(self.targets.numpy(), scores)
        return false_positives, true_positives

    def compute_calibration(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], float]:
        """Return confidence, accuracy and count of each bin that is not empty, and the expected calibration error."""
        confidences = self.probabilities.max(-1)
        correct = (self.outputs.argmax(-1) == self.targets).double().numpy()
        bins = np.minimum((confidences * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
        occupied = np.unique(bins)
        confidence = np.array([confidences[bins == number].mean() for number in occupied])
        accuracy = np.array([correct[bins == number].mean() for number in occupied])
        counts = np.array([(bins == number).sum() for number in occupied])
        error = float((np.abs(confidence - accuracy) * counts).sum() / counts.sum())
        return confidence, accuracy, counts, error

    def rank_mistakes(self) -> list[int]:
        """Return row numbers of the largest losses, in order; for classes, only of wrong predictions."""
        order = np.argsort(-self.losses, kind="stable")
        if self.are_classes:
            wrong = (self.outputs.argmax(-1) != self.targets).numpy()
            order = order[wrong[order]]
        return [int(row) for row in order[:_MAX_MISTAKES]]


@dataclass(frozen=True)
class _Subset:
    """Some sequences of a split, as :class:`paramixer.data.task.Sequences`."""

    split: Sequences
    indices: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.asarray(self.split.lengths)[self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.split[int(self.indices[index])]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return self.split.__getitems__([int(self.indices[index]) for index in indices])


def predict_test(
    model: PretrainedModel, task: Task, limit: int, batch: int, progress: Progress = no_progress
) -> Predictions | None:
    """Predict test sequences; None if the test split is empty.

    Args:
        model: a trained model.
        task: its data.
        limit: predict at most this many sequences, evenly spaced over the test split.
        batch: batch size.
        progress: counts sequences.
    """
    test_size = len(task.test)
    if not test_size:
        return None
    indices = np.unique(np.linspace(0, test_size - 1, min(limit, test_size)).round().astype(np.int64))
    with _count_ticks(progress, len(indices), "predicting test") as tick:
        outputs, targets = predict_split(
            model,
            _Subset(task.test, indices),  # type: ignore[arg-type]
            batch,
            build_collate(task, model.config),
            build_accelerator(),
            tick=tick,
        )
    losses = (
        F.cross_entropy(outputs.double(), targets, reduction="none")
        if targets.dtype == torch.int64
        else (outputs - targets).double().square()
    )
    metrics = compute_metrics(outputs, targets, task.metric)
    return Predictions(indices, test_size, outputs, targets, metrics, losses.numpy())


@contextmanager
def _count_ticks(progress: Progress, total: int, description: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress counter by the given number."""
    steps = iter(progress(range(total), description))

    def tick(count: int) -> None:
        for _ in islice(steps, count):
            pass

    yield tick
    # The counter removes its bar when it is exhausted.
    for _ in steps:
        pass

"""What a model's answers on test show: which classes it takes for which, how sure it is, and where it errs most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import Console
from sklearn.metrics import confusion_matrix, roc_curve
from torch import Tensor

from paramixer.data.task import Sequences, Task
from paramixer.training.batches import collate_for
from paramixer.training.distributed import accelerator
from paramixer.training.factory import Model
from paramixer.training.inference import answers
from paramixer.training.metrics import measured
from paramixer.training.progress import Shown

# Bins of confidence in which answers are compared with how often they are right.
_BINS = 10
# Mistakes that are shown.
_WORST = 6


@dataclass(frozen=True)
class Findings:
    """What was found on so many sequences of test."""

    indices: NDArray[np.int64]
    """Which sequences were asked for."""
    of: int
    """How many test has."""
    answers: Tensor
    """``[sequences, outputs]``, or ``[sequences]`` for values."""
    targets: Tensor
    """``[sequences]``."""
    metrics: dict[str, float]
    """Loss and metric on them."""
    losses: NDArray[np.float64]
    """Of each sequence."""

    @property
    def classes(self) -> bool:
        """Whether answers are classes."""
        return self.answers.dim() == 2

    @property
    def shares(self) -> NDArray[np.float64]:
        """Probability of each class."""
        return self.answers.double().softmax(-1).numpy()

    def confusion(self) -> NDArray[np.int64]:
        """``[truth, answer]``: how often."""
        outputs = self.answers.shape[1]
        counts: NDArray[np.int64] = confusion_matrix(
            self.targets.numpy(), self.answers.argmax(-1).numpy(), labels=range(outputs)
        )
        return counts

    def roc(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """False and true positive rates of the second of two classes; None where that means nothing."""
        if not self.classes or self.answers.shape[1] != 2 or self.targets.min() == self.targets.max():
            return None
        false, true, _ = roc_curve(self.targets.numpy(), (self.answers[:, 1] - self.answers[:, 0]).numpy())
        return false, true

    def calibration(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], float]:
        """Confidence, how often it was right, and how many answers, in each bin that has any; and the mean gap."""
        confidence = self.shares.max(-1)
        right = (self.answers.argmax(-1) == self.targets).double().numpy()
        bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
        there = np.unique(bins)
        mean = np.array([confidence[bins == number].mean() for number in there])
        rate = np.array([right[bins == number].mean() for number in there])
        counts = np.array([(bins == number).sum() for number in there])
        return mean, rate, counts, float((np.abs(mean - rate) * counts).sum() / counts.sum())

    def worst(self) -> list[int]:
        """The places, among the answers, of the worst mistakes; of classes only those taken for another."""
        order = np.argsort(-self.losses, kind="stable")
        if self.classes:
            wrong = (self.answers.argmax(-1) != self.targets).numpy()
            order = order[wrong[order]]
        return [int(place) for place in order[:_WORST]]


@dataclass(frozen=True)
class _Some:
    """Some sequences of a split."""

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


def find(model: Model, task: Task, most: int, batch: int, console: Console) -> Findings | None:
    """Answer so many sequences of test, evenly spread over it; None where there are none."""
    count = len(task.test)
    if not count:
        return None
    chosen = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))
    with Shown(console) as display:
        answer, targets = answers(
            model,
            _Some(task.test, chosen),  # type: ignore[arg-type]
            batch,
            collate_for(task, model.config),
            accelerator(),
            tick=display.evaluating("test", len(chosen)),
        )
    losses = (
        F.cross_entropy(answer.double(), targets, reduction="none")
        if targets.dtype == torch.int64
        else (answer - targets).double().square()
    )
    return Findings(chosen, count, answer, targets, measured(answer, targets, task.metric), losses.numpy())
